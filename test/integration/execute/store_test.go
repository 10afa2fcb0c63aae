// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// refusingStore is a store that takes nothing while it refuses, as one that is
// full.
type refusingStore struct {
	evidence.Store
	refuse  atomic.Bool
	refused atomic.Int64
}

var errFull = errors.New("no space left")

func (s *refusingStore) full(op string) error {
	if !s.refuse.Load() {
		return nil
	}
	s.refused.Add(1)
	return &evidence.StoreError{Op: op, Reason: evidence.StoreFull, Err: errFull}
}

func (s *refusingStore) Create(ctx context.Context, name string, data []byte) error {
	if err := s.full("create"); err != nil {
		return err
	}
	return s.Store.Create(ctx, name, data)
}

func (s *refusingStore) Ready(ctx context.Context) error {
	if err := s.full("probe"); err != nil {
		return err
	}
	return s.Store.Ready(ctx)
}

// asked waits until it has refused some more times.
func (s *refusingStore) asked() func() error {
	enough := s.refused.Load() + 3
	return func() error {
		if n := s.refused.Load(); n < enough {
			return fmt.Errorf("it was asked %d times, not yet %d", n, enough)
		}
		return nil
	}
}

// stays checks that a plan is so after something else has gone on for a while.
func (w *world) stays(plan *v1alpha1.RemediationPlan, check func(*v1alpha1.RemediationPlan) bool, goesOn func() func() error) {
	w.t.Helper()
	w.Eventually("time goes on", goesOn())
	p := &v1alpha1.RemediationPlan{}
	w.Must(admin.Get(w.t.Context(), client.ObjectKeyFromObject(plan), p))
	if !check(p) {
		w.t.Errorf("the plan is %s", remediation.Describe(p))
	}
}
