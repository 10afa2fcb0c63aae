// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/builder"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"
)

// Manager acts on the clusters of one state folder.
type Manager struct {
	State    string // folder with one folder per cluster
	Builder  builder.Builder
	Progress io.Writer
	// Preflight is asked before anything is built or started whether this machine
	// can run a cluster with that many nodes.
	Preflight func(ctx context.Context, nodes int) error
	// Owner is a process with which the clusters that are brought up end; 0 is none.
	Owner int
}

// Record is what is known of a cluster that was started; it is stored in its
// state folder.
type Record struct {
	plan.Cluster
	Pid     int       `json:"pid"` // of the first process, on the host; 0 until it is started
	Started time.Time `json:"started"`
}

// ErrNoCluster says that there is no cluster of that name.
var ErrNoCluster = errors.New("no such cluster")

func (m Manager) layout(name string) plan.Layout {
	return plan.Layout{Root: filepath.Join(m.State, name)}
}

// lock serializes the commands that change one cluster.
func (m Manager) lock(ctx context.Context, name string) (unlock func(), err error) {
	if err := os.MkdirAll(m.State, 0o755); err != nil {
		return nil, fmt.Errorf("creating the state folder: %w", err)
	}
	return builder.Lock(ctx, filepath.Join(m.State, name+".lock"), func() {
		fmt.Fprintf(m.Progress, "waiting for another command on cluster %s\n", name)
	})
}

// Read returns the record of the named cluster, or [ErrNoCluster].
func (m Manager) Read(name string) (Record, error) {
	if err := plan.CheckName(name); err != nil {
		return Record{}, err
	}
	data, err := os.ReadFile(m.layout(name).Record())
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, fmt.Errorf("%w: %s", ErrNoCluster, name)
	}
	if err != nil {
		return Record{}, fmt.Errorf("reading the record of cluster %s: %w", name, err)
	}
	var record Record
	if err := json.Unmarshal(data, &record); err != nil {
		return Record{}, fmt.Errorf("reading the record of cluster %s: %w", name, err)
	}
	return record, nil
}

// write stores the record by rename, so that a reader never sees half of it.
func (r Record) write() error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the record: %w", err)
	}
	path := r.Layout().Record()
	if err := os.WriteFile(path+".new", data, 0o644); err != nil {
		return fmt.Errorf("writing the record: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("writing the record: %w", err)
	}
	return nil
}
