// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"iter"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// WithoutBodies leaves the bodies of a store out, so that records alone are read. The report of [Find] says then of
// each body that the store lacks it.
func WithoutBodies(store evidence.Store) evidence.Store { return recordsOnly{store} }

// recordsOnly is a store whose bodies are not listed.
type recordsOnly struct{ evidence.Store }

// List implements evidence.Store.
func (s recordsOnly) List(ctx context.Context, chain string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for name, err := range s.Store.List(ctx, chain) {
			if _, _, isBody := evidence.ParseBodyName(name); isBody {
				continue
			}
			if !yield(name, err) {
				return
			}
		}
	}
}
