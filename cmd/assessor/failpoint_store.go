// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/plumbline-dev/plumbline/pkg/remediate/evidence"
)

// failingStore counts the records that are created among the writes.
type failingStore struct {
	evidence.Store
	points *failpoints
}

// errNoAnswer is what a lost answer looks like.
var errNoAnswer = errors.New("a failpoint took the answer away")

// Create implements evidence.Store.
func (s *failingStore) Create(ctx context.Context, name string, data []byte) error {
	point := s.points.reached("record " + ordinal(name))
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

// ordinal is the number of a record in its chain.
func ordinal(name string) string {
	_, sequence, ok := evidence.ParseName(name)
	if !ok {
		return name
	}
	return strconv.FormatInt(sequence, 10)
}
