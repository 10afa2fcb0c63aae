// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// failingStore counts the records and bodies that are created among the writes.
type failingStore struct {
	evidence.Store
	points *failpoints
}

// errNoAnswer is what a lost answer looks like.
var errNoAnswer = errors.New("a failpoint took the answer away")

// Create implements evidence.Store.
func (s *failingStore) Create(ctx context.Context, name string, data []byte) error {
	point := s.points.reached(s.write(ctx, name))
	if s.points.mute {
		return nil
	}
	point.at(whenBefore)
	err := s.Store.Create(ctx, name, data)
	point.at(whenAfter)
	if point.act == actLose {
		return errors.Join(errNoAnswer, err)
	}
	return err
}

// write names what is created: a record by its number in the chain, a body by how many the
// chain has, whichever process stored these.
func (s *failingStore) write(ctx context.Context, name string) string {
	if _, sequence, ok := evidence.ParseName(name); ok {
		return "record " + strconv.FormatInt(sequence, 10)
	}
	chain, _, ok := evidence.ParseBodyName(name)
	if !ok {
		return name
	}
	bodies := 1
	for there, err := range s.List(ctx, chain) {
		if _, _, isBody := evidence.ParseBodyName(there); err == nil && isBody {
			bodies++
		}
	}
	return "body " + strconv.Itoa(bodies)
}
