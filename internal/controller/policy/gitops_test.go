// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"maps"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/gitops"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/internal/planning"
)

// A user took the mark of a GitOps tool from an object, which changes no Baseline: the drift was left alone until
// something else happened to any object.
func TestADriftThatAGitOpsToolLetsGoOfIsLookedAtAgain(t *testing.T) {
	b := newBench(t)
	source := &marked{Source: b.r.Source, by: map[string]string{gitops.ArgoCDInstance: "shop"}}
	b.r.Source = source
	result := b.look()
	if got := b.plans(); len(got) > 0 || result.RequeueAfter == 0 || result.RequeueAfter > healthAgain {
		t.Fatalf("%d plans, looked at again after %s, want none, and within %s", len(got), result.RequeueAfter, healthAgain)
	}
	source.by = nil
	b.clock.SetTime(b.clock.Now().Add(result.RequeueAfter))
	b.look()
	if got := b.plans(); len(got) != 1 {
		t.Errorf("there are %d plans once the object has no mark, want one", len(got))
	}
}

// marked is a Source whose objects have more labels.
type marked struct {
	planning.Source
	by map[string]string
}

// Object implements planning.Source.
func (m *marked) Object(ctx context.Context, key kube.Key) (*kube.Object, error) {
	object, err := m.Source.Object(ctx, key)
	if err != nil || object == nil || m.by == nil {
		return object, err //nolint:wrapcheck // it stands for the source
	}
	with := *object
	with.Labels = maps.Clone(object.Labels)
	maps.Copy(with.Labels, m.by)
	return &with, nil
}
