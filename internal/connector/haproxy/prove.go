// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/internal/connector/haproxy/runtimeapi"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// Program is a HAProxy that runs.
type Program struct {
	// Master is the path of the master's socket.
	Master string
	// Splits is the path of splits.map, as the configuration has it.
	Splits string
}

// OutOfSync is a worker that does not have an entry.
type OutOfSync struct {
	PID int
	// Old says that the worker is one of before a reload, which answers on kept connections alone.
	Old bool
	Key string
	// Why says how they differ, or that the worker did not answer.
	Why error
}

func (o OutOfSync) String() string { return fmt.Sprintf("worker %d: %v", o.PID, o.Why) }

// Entries of ports that a split divides.
func Entries(ports []envoyxds.Port) []Entry {
	var all []Entry
	for _, p := range ports {
		if e, divided := EntryOf(p); divided {
			all = append(all, e)
		}
	}
	return all
}

// workerPatience bounds the time for one worker, so that a worker that hangs keeps no other one waiting.
const workerPatience = 2 * time.Second

// Set gives each worker the entries. A worker of before a reload that has other rules keeps its own,
// because it knows the entry by another key; it is found by [Program.Prove]. An error is about the
// workers that did not take the entries; all others have them.
func (p Program) Set(ctx context.Context, entries []Entry) error {
	var errs []error
	err := p.visitWorkers(ctx, func(ctx context.Context, worker runtimeapi.Client, old bool) {
		if err := p.setIn(ctx, worker, old, entries); err != nil && !isGone(err) {
			errs = append(errs, fmt.Errorf("setting the entries of worker %d: %w", worker.PID, err))
		}
	})
	return errors.Join(append(errs, err)...)
}

func (p Program) setIn(ctx context.Context, worker runtimeapi.Client, old bool, entries []Entry) error {
	for _, e := range entries {
		_, found, err := worker.GetMap(ctx, p.Splits, e.Key)
		if err == nil && (found || !old) {
			err = worker.SetMap(ctx, p.Splits, e.Key, e.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Prove reads each entry back from each worker. With no worker out of sync, and without an error, the
// entries are in force for each request that begins from now on. A worker that does not answer is out
// of sync, and so is a worker of before a reload with an entry of another split: a split that was removed
// has no entry that the worker could lack.
func (p Program) Prove(ctx context.Context, entries []Entry) (late []OutOfSync, err error) {
	err = p.visitWorkers(ctx, func(ctx context.Context, worker runtimeapi.Client, old bool) {
		if ofWorker, err := p.proveWorker(ctx, worker, old, entries); !isGone(err) {
			late = append(late, ofWorker...)
		}
	})
	if err != nil || len(late) == 0 {
		return late, err
	}
	// One that ended while it was asked has broken off its answer.
	present, old, err := runtimeapi.Client{Socket: p.Master}.Workers(ctx)
	return slices.DeleteFunc(late, func(o OutOfSync) bool {
		return err == nil && !slices.Contains(present, o.PID) && !slices.Contains(old, o.PID)
	}), err
}

// proveWorker returns the entries that a worker lacks; of a worker that lacks none, those of other splits. The error is a
// [runtimeapi.GoneError].
func (p Program) proveWorker(ctx context.Context, worker runtimeapi.Client, old bool, entries []Entry) (late []OutOfSync, gone error) {
	for _, e := range entries {
		why, err := p.proveIn(ctx, worker, e)
		if isGone(err) {
			return nil, err
		}
		if err = cmp.Or(why, err); err != nil {
			late = append(late, OutOfSync{worker.PID, old, e.Key, err})
		}
		if ctx.Err() != nil {
			return late, nil //nolint:nilerr // it hangs, as late says
		}
	}
	if !old || len(late) > 0 {
		return late, nil
	}
	keys, err := worker.MapKeys(ctx, p.Splits)
	switch {
	case isGone(err):
		return nil, err
	case err != nil:
		return append(late, OutOfSync{PID: worker.PID, Old: old, Why: err}), nil //nolint:nilerr // late has the error
	}
	for _, key := range keys {
		if !slices.ContainsFunc(entries, func(e Entry) bool { return e.Key == key }) {
			late = append(late, OutOfSync{worker.PID, old, key, fmt.Errorf("it divides requests by %s of before", key)})
		}
	}
	return late, nil
}

// proveIn says why a worker does not have an entry, or that it cannot be asked.
func (p Program) proveIn(ctx context.Context, worker runtimeapi.Client, e Entry) (why, err error) {
	value, found, err := worker.GetMap(ctx, p.Splits, e.Key)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return fmt.Errorf("%s is not there", e.Key), nil
	default:
		return CheckEntry(e, value), nil
	}
}

// isGone says whether the worker has ended meanwhile, so that it answers no requests.
func isGone(err error) bool {
	var gone *runtimeapi.GoneError
	return errors.As(err, &gone)
}

// visitWorkers visits all workers, and those that begin meanwhile.
func (p Program) visitWorkers(ctx context.Context, visit func(ctx context.Context, worker runtimeapi.Client, old bool)) error {
	var visited []int
	for {
		present, old, err := runtimeapi.Client{Socket: p.Master}.Workers(ctx)
		if err != nil {
			return err
		}
		if len(present) == 0 {
			return errors.New("asking HAProxy: the master has no worker")
		}
		before := len(visited)
		for _, pid := range slices.Concat(present, old) {
			if slices.Contains(visited, pid) {
				continue
			}
			visited = append(visited, pid)
			p.visitOne(ctx, runtimeapi.Client{Socket: p.Master, PID: pid}, slices.Contains(old, pid), visit)
		}
		if len(visited) == before {
			return nil
		}
	}
}

func (p Program) visitOne(ctx context.Context, worker runtimeapi.Client, old bool, visit func(ctx context.Context, worker runtimeapi.Client, old bool)) {
	ctx, cancel := context.WithTimeout(ctx, workerPatience)
	defer cancel()
	visit(ctx, worker, old)
}
