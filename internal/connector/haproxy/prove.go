// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// Set gives each worker the entries. A worker with other rules keeps its own, because it knows the
// entry by another key; it is found by [Program.Prove]. An error is about the first entry that a worker
// did not take.
func (p Program) Set(ctx context.Context, entries []Entry) error {
	return p.each(ctx, func(worker runtimeapi.Client, old bool) error {
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
	})
}

// Prove reads each entry back from each worker. With no worker out of sync, and without an
// error, the entries are in force for each request that begins from now on.
func (p Program) Prove(ctx context.Context, entries []Entry) (late []OutOfSync, err error) {
	err = p.each(ctx, func(worker runtimeapi.Client, old bool) error {
		for _, e := range entries {
			value, found, err := worker.GetMap(ctx, p.Splits, e.Key)
			var gone *runtimeapi.GoneError
			switch {
			case errors.As(err, &gone):
				return err
			case err == nil && !found:
				err = fmt.Errorf("%s is not there", e.Key)
			case err == nil:
				err = CheckEntry(e, value)
			}
			if err != nil {
				late = append(late, OutOfSync{worker.PID, old, e.Key, err})
			}
		}
		return nil
	})
	return late, err
}

// each visits all workers. One that ends meanwhile answers no requests; a worker that begins meanwhile
// is visited as well.
func (p Program) each(ctx context.Context, visit func(worker runtimeapi.Client, old bool) error) error {
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
			var gone *runtimeapi.GoneError
			if err := visit(runtimeapi.Client{Socket: p.Master, PID: pid}, slices.Contains(old, pid)); err != nil && !errors.As(err, &gone) {
				return err
			}
		}
		if len(visited) == before {
			return nil
		}
	}
}
