// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/kubeapi"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/sandbox"
)

// sign is something that shows from outside that a daemon does its work.
type sign struct {
	meaning string
	suspect string // daemon whose log is likely to tell why it fails
	probe   func(context.Context, *kubeapi.Client) error
}

// signs lists what must hold in a cluster that works, in the order in which
// bring-up reaches it.
func signs(c plan.Cluster) []sign {
	all := []sign{{
		"default service account exists", plan.ControllerManager,
		func(ctx context.Context, client *kubeapi.Client) error {
			return client.Exists(ctx, "/api/v1/namespaces/default/serviceaccounts/default")
		},
	}}
	if c.Options.Nodes == 0 {
		return all
	}
	return append(all,
		sign{"node ready", plan.Kubelet, func(ctx context.Context, client *kubeapi.Client) error {
			return client.Condition(ctx, "/api/v1/nodes/"+c.NodeName(), "Ready")
		}},
		sign{"cluster DNS ready", plan.Kubelet, func(ctx context.Context, client *kubeapi.Client) error {
			return client.Condition(ctx, plan.DNSDeployment, "Available")
		}},
	)
}

// healthPatience is how long a cluster may be unwell before it counts as broken:
// on a loaded machine one probe may fail.
const healthPatience = 10 * time.Second

// dead says that a cluster is broken for good, so that waiting is of no use.
type dead struct{ reason string }

func (d dead) Error() string { return d.reason }

// healthyWithin returns nil as soon as the cluster is healthy, or the last reason
// why it is not when patience has ended.
func (m Manager) healthyWithin(ctx context.Context, r Record, patience time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(awaitInterval)
	defer ticker.Stop()
	for {
		err := Health(limited, r)
		var gone dead
		if err == nil || errors.As(err, &gone) {
			return err
		}
		select {
		case <-limited.Done():
			return err
		case <-ticker.C:
		}
	}
}

// Health reports, by a nil error, that the cluster works: its first process
// lives, no daemon has ended, and every sign of work is there.
func Health(ctx context.Context, r Record) error {
	if err := intact(r); err != nil {
		return err
	}
	client, err := newClient(r.Cluster)
	if err != nil {
		return dead{err.Error()}
	}
	defer client.Close()
	if err := client.Ready(ctx); err != nil {
		return fmt.Errorf("API server is not ready: %w", err)
	}
	for _, sign := range signs(r.Cluster) {
		if err := sign.probe(ctx, client); err != nil {
			return fmt.Errorf("not so: %s: %w", sign.meaning, err)
		}
	}
	return nil
}

// intact checks what needs no network: milliseconds, and final.
func intact(r Record) error {
	alive, err := sandbox.Alive(r.Layout().Alive())
	if err != nil {
		return dead{err.Error()}
	}
	if !alive {
		return dead{"its first process has ended"}
	}
	if _, err := os.Stat(r.Layout().Ready()); errors.Is(err, fs.ErrNotExist) {
		return dead{"its bring-up did not finish"}
	}
	exits, err := os.ReadDir(r.Layout().Exits())
	if err != nil {
		return dead{err.Error()}
	}
	if len(exits) == 0 {
		return nil
	}
	first := exits[0].Name() // one is enough to tell
	status, err := os.ReadFile(filepath.Join(r.Layout().Exits(), first))
	if err != nil {
		return dead{err.Error()}
	}
	return dead{first + " " + strings.TrimSpace(string(status)) + logTail(r.Layout(), first)}
}

func newClient(c plan.Cluster) (*kubeapi.Client, error) {
	var parts [][]byte
	for _, file := range c.AdministratorFiles() {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the administrator's credentials: %w", err)
		}
		parts = append(parts, data)
	}
	return kubeapi.New(c.Server(), parts[0], parts[1], parts[2])
}
