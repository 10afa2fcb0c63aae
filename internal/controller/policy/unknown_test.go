// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/internal/planning"
)

// The watch told of an object later than of its Baseline, or the object could not be read: the
// drift was left alone until something else happened to any object.
func TestADriftWhoseObjectIsNotKnownIsLookedAtAgain(t *testing.T) {
	b := newBench(t)
	source := &unreadable{Source: b.r.Source, err: errors.New("the kind is not listed yet")}
	b.r.Source = source
	result := b.look()
	if got := b.plans(); len(got) > 0 || result.RequeueAfter == 0 || result.RequeueAfter > healthAgain {
		t.Fatalf("%d plans, looked at again after %s, want none, and within %s", len(got), result.RequeueAfter, healthAgain)
	}
	source.err = nil
	b.clock.SetTime(b.clock.Now().Add(result.RequeueAfter))
	b.look()
	if got := b.plans(); len(got) != 1 {
		t.Errorf("there are %d plans once the object is known, want one", len(got))
	}
}

// unreadable is a Source that reads no object while it has an error.
type unreadable struct {
	planning.Source
	err error
}

// Object implements planning.Source.
func (u *unreadable) Object(ctx context.Context, key kube.Key) (*kube.Object, error) {
	if u.err != nil {
		return nil, u.err
	}
	return u.Source.Object(ctx, key) //nolint:wrapcheck // it stands for the source
}
