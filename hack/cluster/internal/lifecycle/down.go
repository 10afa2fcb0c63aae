// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/sandbox"
)

// removePatience bounds a teardown, which takes well under a second.
const removePatience = 30 * time.Second

// Down takes the cluster away: processes, mounts, namespaces, links, routes,
// control groups and state. A cluster that does not exist is no error.
func (m Manager) Down(ctx context.Context, name string) error {
	if err := plan.CheckName(name); err != nil {
		return err
	}
	begin := time.Now()
	unlock, err := m.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	_, absent := os.Stat(m.layout(name).Root)
	if errors.Is(absent, os.ErrNotExist) {
		fmt.Fprintf(m.Progress, "no cluster %s\n", name)
		return nil
	}
	if err := m.remove(ctx, name); err != nil {
		return fmt.Errorf("taking cluster %s down: %w", name, err)
	}
	fmt.Fprintf(m.Progress, "cluster %s is down, after %.1fs\n", name, time.Since(begin).Seconds())
	return nil
}

// remove is Down without the lock, which the caller holds. A teardown that has
// begun is finished even when the user interrupts.
func (m Manager) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removePatience)
	defer cancel()
	layout := m.layout(name)
	record, err := m.Read(name)
	switch {
	case errors.Is(err, ErrNoCluster):
		return os.RemoveAll(layout.Root)
	case err != nil:
		// A damaged record must not be guessed at while its cluster lives.
		if alive, aliveErr := sandbox.Alive(layout.Alive()); alive || aliveErr != nil {
			return errors.Join(err, aliveErr)
		}
		return os.RemoveAll(layout.Root)
	}
	if err := m.end(ctx, record); err != nil {
		return err
	}
	if err := sandbox.RemoveCgroup(ctx, record.Cgroup); err != nil {
		return err
	}
	return os.RemoveAll(layout.Root)
}

// end kills a cluster that lives. The order matters: the link has our name only
// as long as the cluster lives.
func (m Manager) end(ctx context.Context, record Record) error {
	alive, err := sandbox.Alive(record.Layout().Alive())
	if err != nil || !alive {
		return err
	}
	if err := sandbox.Disconnect(record.Network); err != nil {
		return err
	}
	return sandbox.Kill(ctx, record.Pid)
}
