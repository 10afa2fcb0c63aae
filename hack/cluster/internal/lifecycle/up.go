// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/builder"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/component"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"
)

// ErrDiffers says that the running cluster was started with other options or
// programs than those asked for now.
var ErrDiffers = errors.New("the running cluster differs from what is asked for")

// Up makes the cluster run. A healthy cluster that is as asked for is left alone;
// one that is broken is replaced. A healthy one that differs is replaced only
// with recreate: somebody may be using it. When bring-up fails, what was started
// is taken away, and the logs stay until the next up or down.
func (m Manager) Up(ctx context.Context, options plan.Options, recreate bool) (Record, error) {
	if err := m.check(options); err != nil {
		return Record{}, err
	}
	unlock, err := m.lock(ctx, options.Name)
	if err != nil {
		return Record{}, err
	}
	defer unlock()
	programs, err := m.Builder.Folders(Needed(options.Nodes))
	if err != nil {
		return Record{}, err
	}
	wanted := plan.Cluster{Options: options, Programs: programs, Root: m.layout(options.Name).Root}
	running, keep, err := m.reuse(ctx, wanted, recreate)
	if keep || err != nil {
		return running, err
	}
	if err := m.Preflight(ctx, options.Nodes); err != nil {
		return Record{}, err
	}
	if _, err := m.Builder.Ensure(ctx, Needed(options.Nodes)); err != nil {
		return Record{}, err
	}
	if err := m.remove(ctx, options.Name); err != nil {
		return Record{}, err
	}
	return m.bringUp(ctx, wanted)
}

func (m Manager) check(options plan.Options) error {
	if err := plan.CheckName(options.Name); err != nil {
		return err
	}
	if options.Nodes < 0 || options.Nodes > 1 {
		return fmt.Errorf("%d nodes: want 0, a control plane only, or 1", options.Nodes)
	}
	if options.Nodes == 0 && options.HostRegistry != 0 {
		return errors.New("a registry without a node: nothing would pull from it")
	}
	return plan.CheckRoot(m.layout(options.Name).Root)
}

// Needed lists the components that a cluster with that many nodes runs.
func Needed(nodes int) []component.Component {
	if nodes == 0 {
		return component.Pick(component.Kubernetes)
	}
	return component.Node()
}

// reuse decides whether the cluster that may be there is kept.
func (m Manager) reuse(ctx context.Context, wanted plan.Cluster, recreate bool) (Record, bool, error) {
	running, err := m.Read(wanted.Options.Name)
	if errors.Is(err, ErrNoCluster) {
		return Record{}, false, nil
	}
	if err != nil {
		fmt.Fprintf(m.Progress, "cluster %s is replaced: %v\n", wanted.Options.Name, err)
		return Record{}, false, nil
	}
	if err := m.healthyWithin(ctx, running, healthPatience); err != nil {
		if ctx.Err() != nil {
			return Record{}, false, ctx.Err()
		}
		fmt.Fprintf(m.Progress, "cluster %s is replaced: %v\n", wanted.Options.Name, err)
		return Record{}, false, nil
	}
	if recreate {
		return Record{}, false, nil
	}
	if difference := differs(running.Cluster, wanted); difference != "" {
		return Record{}, false, fmt.Errorf("%w (give --recreate to replace it):\n%s", ErrDiffers, difference)
	}
	fmt.Fprintf(m.Progress, "cluster %s is up already\n", wanted.Options.Name)
	return running, true, nil
}

// differs compares what the user can choose; addresses differ at every bring-up.
// It returns both sides, as text to show, or "".
func differs(running, wanted plan.Cluster) string {
	is, should := choices(running), choices(wanted)
	if is == should {
		return ""
	}
	return fmt.Sprintf("  running: %s\n  asked:   %s", is, should)
}

func choices(c plan.Cluster) string {
	text, err := json.Marshal(struct {
		plan.Options
		Programs map[string]string `json:"programs"`
	}{c.Options, c.Programs})
	if err != nil { // strings, numbers and booleans always encode
		return err.Error()
	}
	return string(text)
}

// bringUp starts a cluster that does not exist.
func (m Manager) bringUp(ctx context.Context, wanted plan.Cluster) (Record, error) {
	archives, err := m.systemImages(ctx, wanted)
	if err != nil {
		return Record{}, err
	}
	suffix := make([]byte, 3)
	_, _ = rand.Read(suffix) // documented never to fail
	wanted.Cgroup = plan.CgroupPrefix + wanted.Options.Name + "-" + hex.EncodeToString(suffix)
	b := &bringUp{
		record:   Record{Cluster: wanted, Started: time.Now()},
		archives: archives,
		progress: m.Progress,
		begin:    time.Now(),
		owner:    m.Owner,
	}
	if err := b.run(ctx); err != nil {
		return Record{}, b.abandon(ctx, err)
	}
	return b.record, nil
}

// machineLock is held while addresses are chosen and taken into use. It is one
// for the machine, whatever the state folder.
const machineLock = "/run/lock/plumbline-cluster.lock"

func lockMachine(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(machineLock), 0o755); err != nil {
		return nil, fmt.Errorf("creating the lock folder: %w", err)
	}
	return builder.Lock(ctx, machineLock, nil)
}
