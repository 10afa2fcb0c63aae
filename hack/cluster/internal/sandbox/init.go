// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"
)

// Init is the first process of a cluster. It returns when the launcher goes away
// before it has committed, and when the owner has ended; the caller must then end
// the process, which ends the cluster.
func Init(orders io.Reader) error {
	if os.Getpid() != 1 {
		return errors.New("this command is the first process of a cluster and is started by \"cluster up\"")
	}
	first := &firstProcess{reports: json.NewEncoder(os.NewFile(eventsDescriptor, "reports")), daemons: map[int]string{}}
	decoder := json.NewDecoder(orders)
	for {
		var next order
		if err := decoder.Decode(&next); err != nil {
			return fmt.Errorf("the launcher went away before the cluster was up: %w", err)
		}
		if next.Commit {
			first.report(report{Done: true})
			if next.Owned {
				return awaitOwner()
			}
			select {} // the reaper goes on
		}
		if err := first.carryOut(next); err != nil {
			first.report(report{Error: err.Error()})
			continue
		}
		first.report(report{Done: true})
	}
}

type firstProcess struct {
	exits string   // folder for exit statuses
	alive *os.File // held open, and locked, for life

	mu      sync.Mutex
	reports *json.Encoder
	daemons map[int]string // name by process number
}

// report tells the launcher, who may have gone: after the commit nobody listens,
// and the exit files are what counts.
func (f *firstProcess) report(r report) { _ = f.reports.Encode(r) }

func (f *firstProcess) carryOut(o order) error {
	switch {
	case o.Setup != nil:
		return f.setUp(*o.Setup)
	case o.Start != nil:
		return f.start(*o.Start)
	default:
		return errors.New("an order without content")
	}
}

func (f *firstProcess) setUp(s plan.Sandbox) error {
	alive, err := holdLock(s.Alive)
	if err != nil {
		return err
	}
	f.alive, f.exits = alive, s.Exits
	if err := setUpMounts(s); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(s.Host)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if err := setUpNetwork(s); err != nil {
		return err
	}
	go f.reap()
	return nil
}

func holdLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the life lock: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("taking the life lock: %w", err), file.Close())
	}
	return file, nil
}
