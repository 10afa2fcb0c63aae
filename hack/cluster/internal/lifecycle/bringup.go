// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/address"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/kubeapi"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/sandbox"
)

// bringUp is one attempt to start a cluster.
type bringUp struct {
	record   Record
	archives []string // images to load before the first pod
	progress io.Writer
	begin    time.Time
	// owner is the process with which the cluster ends; 0 is none.
	owner int

	launcher *sandbox.Launcher
	client   *kubeapi.Client
}

// run is the table of contents of bring-up.
func (b *bringUp) run(ctx context.Context) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	if err := b.startAll(ctx, b.record.First()); err != nil {
		return err
	}
	// Loading images needs containerd only: it goes on while the API server starts.
	group, groupContext := errgroup.WithContext(ctx)
	group.Go(func() error { return b.awaitControlPlane(groupContext) })
	group.Go(func() error { return b.loadImages(groupContext) })
	if err := group.Wait(); err != nil {
		return err
	}
	if err := b.startAll(ctx, b.record.Second()); err != nil {
		return err
	}
	if err := b.installAddons(ctx); err != nil {
		return err
	}
	if err := b.awaitWorking(ctx); err != nil {
		return err
	}
	return b.commit(ctx)
}

// enter prepares the state folder, chooses addresses, and makes the namespaces
// with their link. The machine's lock ends when the addresses show in the routing
// table, where the next bring-up sees them.
func (b *bringUp) enter(ctx context.Context) error {
	unlock, err := lockMachine(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	routed, err := sandbox.Routed()
	if err != nil {
		return err
	}
	if b.record.Network, err = address.Allocate(routed); err != nil {
		return err
	}
	if err := b.writeState(); err != nil {
		return err
	}
	if err := sandbox.CreateCgroup(b.record.Cgroup); err != nil {
		return err
	}
	if b.launcher, err = sandbox.Launch(b.record.Layout().Log("first-process"), b.owner); err != nil {
		return err
	}
	b.record.Pid = b.launcher.Pid
	if err := b.record.write(); err != nil {
		return err
	}
	if err := sandbox.Connect(b.record.Network, b.launcher.Pid); err != nil {
		return err
	}
	return b.launcher.SetUp(ctx, b.record.Sandbox())
}

// writeState writes everything that the daemons read. The record comes first: it
// names what must be cleaned up if this process is killed right after.
func (b *bringUp) writeState() error {
	for _, folder := range b.record.Layout().Folders() {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("creating the state folder: %w", err)
		}
	}
	if err := b.record.write(); err != nil {
		return err
	}
	files, err := b.record.ConfigFiles()
	if err != nil {
		return err
	}
	credentials, err := b.record.Credentials(b.begin)
	if err != nil {
		return err
	}
	for _, file := range append(files, credentials...) {
		if err := os.MkdirAll(filepath.Dir(file.Path), 0o755); err != nil {
			return fmt.Errorf("writing the state: %w", err)
		}
		if err := os.WriteFile(file.Path, file.Data, file.Mode); err != nil {
			return fmt.Errorf("writing the state: %w", err)
		}
	}
	b.client, err = newClient(b.record.Cluster)
	return err
}

func (b *bringUp) startAll(ctx context.Context, processes []plan.Process) error {
	for _, process := range processes {
		if err := b.launcher.Start(ctx, process); err != nil {
			return err
		}
	}
	return nil
}

func (b *bringUp) awaitControlPlane(ctx context.Context) error {
	return b.await(ctx, "API server ready", plan.APIServer, b.client.Ready)
}

func (b *bringUp) loadImages(ctx context.Context) error {
	if b.record.Options.Nodes == 0 {
		return nil
	}
	socket := b.record.Layout().ContainerdSocket()
	err := b.await(ctx, "containerd listening", plan.Containerd, func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err != nil {
			return err
		}
		return connection.Close()
	})
	if err != nil {
		return err
	}
	if err := importImages(ctx, b.record.Cluster, b.archives); err != nil {
		return err
	}
	b.say("system images loaded")
	return nil
}

// installAddons repeats, because the namespace kube-system appears a moment after
// the API server is ready.
func (b *bringUp) installAddons(ctx context.Context) error {
	if b.record.Options.Nodes == 0 {
		return nil
	}
	addons, err := b.record.Addons()
	if err != nil {
		return err
	}
	return b.await(ctx, "CoreDNS installed", plan.APIServer, func(ctx context.Context) error {
		for _, addon := range addons {
			if err := b.client.Apply(ctx, addon.Path, addon.YAML); err != nil {
				return err
			}
		}
		return nil
	})
}

// awaitWorking waits for what shows that each daemon does its work.
func (b *bringUp) awaitWorking(ctx context.Context) error {
	for _, sign := range signs(b.record.Cluster) {
		err := b.await(ctx, sign.meaning, sign.suspect, func(ctx context.Context) error { return sign.probe(ctx, b.client) })
		if err != nil {
			return err
		}
	}
	return nil
}

// commit notes readiness before it lets the cluster live on: if this process is
// killed in between, the cluster dies, and the note alone means nothing.
func (b *bringUp) commit(ctx context.Context) error {
	if err := os.WriteFile(b.record.Layout().Ready(), nil, 0o644); err != nil {
		return fmt.Errorf("noting that the cluster is ready: %w", err)
	}
	if err := b.launcher.Commit(ctx); err != nil {
		return err
	}
	b.client.Close()
	b.say("cluster " + b.record.Options.Name + " is up")
	return nil
}

// abandonPatience bounds the cleaning up after a failure.
const abandonPatience = 30 * time.Second

// abandon takes away what was started and returns the reason with whatever went
// wrong in doing so. An interrupted attempt leaves nothing; a failed one leaves
// its logs.
func (b *bringUp) abandon(ctx context.Context, reason error) error {
	interrupted := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonPatience)
	defer cancel()
	var problems []error
	if b.launcher != nil {
		problems = append(problems, sandbox.Disconnect(b.record.Network), b.launcher.Abort())
	}
	problems = append(problems, sandbox.RemoveCgroup(ctx, b.record.Cgroup))
	if interrupted {
		problems = append(problems, os.RemoveAll(b.record.Root))
	} else {
		reason = fmt.Errorf("%w\n(logs are in %s until the next up or down)", reason, filepath.Dir(b.record.Layout().Log("")))
	}
	return errors.Join(append([]error{reason}, problems...)...)
}

func (b *bringUp) say(what string) {
	fmt.Fprintf(b.progress, "%6.1fs  %s\n", time.Since(b.begin).Seconds(), what)
}
