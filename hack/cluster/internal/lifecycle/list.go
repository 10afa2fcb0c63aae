// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/sandbox"
)

// Status is one line of the list of clusters.
type Status struct {
	Name    string
	Problem string // "" when healthy
	Server  string
	Started time.Time
}

// List tells the state of every cluster of the state folder.
func (m Manager) List(ctx context.Context) ([]Status, error) {
	entries, err := os.ReadDir(m.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	var all []Status
	for _, entry := range entries {
		if !entry.IsDir() || plan.CheckName(entry.Name()) != nil {
			continue
		}
		all = append(all, m.status(ctx, entry.Name()))
	}
	return all, nil
}

func (m Manager) status(ctx context.Context, name string) Status {
	record, err := m.Read(name)
	if err != nil {
		return Status{Name: name, Problem: err.Error()}
	}
	status := Status{Name: name, Server: record.Server(), Started: record.Started}
	// The same patience as that of up, so that both call the same clusters broken.
	if err := m.healthyWithin(ctx, record, healthPatience); err != nil {
		status.Problem = err.Error()
	}
	return status
}

// EnterArgs is the nsenter command line that runs a command inside the cluster.
func (m Manager) EnterArgs(name string, command []string) (Record, []string, error) {
	record, err := m.Read(name)
	if err != nil {
		return Record{}, nil, err
	}
	alive, err := sandbox.Alive(record.Layout().Alive())
	if err != nil {
		return Record{}, nil, err
	}
	if !alive {
		return Record{}, nil, fmt.Errorf("cluster %s is not running", name)
	}
	return record, plan.EnterArgs(record.Pid, command), nil
}
