// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// silent is a store that accepts each call and never answers.
type silent struct{ evidence.Store }

func (silent) Create(ctx context.Context, _ string, _ []byte) error { return until(ctx) }

func (silent) Read(ctx context.Context, _ string) ([]byte, error) { return nil, until(ctx) }

func (silent) Ready(ctx context.Context) error { return until(ctx) }

func until(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// D10 of the review of remediation: Pause, Cancel and Halt of every plan hung behind a
// store that did not answer.
func TestAStoreThatNeverAnswersEndsEachCallAtItsDeadline(t *testing.T) {
	calls := map[string]func(context.Context, evidence.Store) error{
		"create": func(ctx context.Context, s evidence.Store) error { return s.Create(ctx, "a/1", nil) },
		"read":   func(ctx context.Context, s evidence.Store) error { _, err := s.Read(ctx, "a/1"); return err },
		"ready":  func(ctx context.Context, s evidence.Store) error { return s.Ready(ctx) },
	}
	for name, call := range calls {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			err := call(t.Context(), evidence.WithDeadline(silent{}, 5*time.Second))
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 5*time.Second {
				t.Errorf("%s ends after %s with %v", name, took, err)
			}
		})
	}
}
