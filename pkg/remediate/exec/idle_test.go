// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// fakeCache has what the API server has, or had, or is to have.
type fakeCache struct {
	client.Reader
	w *world
	// shows changes what is read; an error is the answer.
	shows func(client.Object) error
}

func (c *fakeCache) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	read(c.w, key, o) //nolint:contextcheck // a world has a context of its own
	return c.shows(o)
}

// newIdleWorld returns a world whose plan waits for its target, and has a cache.
func newIdleWorld(t *testing.T, shows func(client.Object) error) *world {
	t.Helper()
	w := newWorld(t)
	w.targets.ill = true
	w.carry()
	if step := w.now().Status.Steps[0]; step.State != v1alpha1.StepApplied {
		t.Fatalf("the step is %s", step.State)
	}
	w.Cached = &fakeCache{w: w, shows: shows}
	return w
}

// live carries the plan on once, and returns what of it was read live.
func live(w *world) (reads []string, out Outcome) {
	w.Helper()
	var mu sync.Mutex // reads go on beside each other
	w.fails = func(call, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(reads, call) {
			reads = append(reads, call)
		}
		return nil
	}
	out = w.carry()
	slices.Sort(reads)
	return reads, out
}

// D24 of the review of remediation.
func TestAPlanThatWaitsReadsItsTargetAloneLive(t *testing.T) {
	w := newIdleWorld(t, func(client.Object) error { return nil })
	reads, out := live(w)
	if diff := cmp.Diff([]string{"get Baseline", "get RemediationPlan"}, reads); diff != "" {
		t.Errorf("read live beside the target (-want +got):\n%s", diff)
	}
	want := []Sighting{{Reference{deployments, "shop", "web"}, w.targets.objects["web"]["metadata"].(map[string]any)["resourceVersion"].(string)}}
	if diff := cmp.Diff(want, out.Watch); diff != "" {
		t.Errorf("it waits for (-want +got):\n%s", diff)
	}
	w.targets.ill = false
	if _, out = live(w); len(out.Watch) > 0 || !out.Done {
		t.Errorf("after the end it waits for %v: %s", out.Watch, out.Why)
	}
}

// A cache that shows something else is behind, or is ahead of what was read: the API server
// says what is so.
func TestACacheThatShowsSomethingElseIsNotBelieved(t *testing.T) {
	policy := func(how func(*v1alpha1.RemediationPolicy)) func(client.Object) error {
		return func(o client.Object) error {
			if p, ok := o.(*v1alpha1.RemediationPolicy); ok {
				how(p)
			}
			return nil
		}
	}
	tests := map[string]func(client.Object) error{
		"it cannot be read": func(client.Object) error { return errNetwork },
		"another policy":    policy(func(p *v1alpha1.RemediationPolicy) { p.UID = "other" }),
		"a policy that is being deleted": policy(func(p *v1alpha1.RemediationPolicy) {
			p.DeletionTimestamp = &metav1.Time{Time: epoch}
		}),
		"a halted policy":           policy(func(p *v1alpha1.RemediationPolicy) { p.Spec.Mode = v1alpha1.PolicyModeHalted }),
		"a policy that has changed": policy(func(p *v1alpha1.RemediationPolicy) { p.Spec.Safety.MaxPerDay++ }),
		"a halted ledger": func(o client.Object) error {
			if l, ok := o.(*v1alpha1.RemediationLedger); ok {
				l.Spec.Halt = &v1alpha1.LedgerHalt{Reason: "an incident"}
			}
			return nil
		},
		"no ledger": func(o client.Object) error {
			if _, ok := o.(*v1alpha1.RemediationLedger); ok {
				return errNetwork
			}
			return nil
		},
	}
	for name, shows := range tests {
		t.Run(name, func(t *testing.T) {
			w := newIdleWorld(t, shows)
			if reads, out := live(w); !slices.Contains(reads, "get RemediationPolicy") || w.now().Status.Phase != v1alpha1.PlanRunning || len(out.Watch) != 1 {
				t.Errorf("the plan is %s after %v: %s", w.now().Status.Phase, reads, out.Why)
			}
		})
	}
	t.Run("a namespace of another Environment", func(t *testing.T) {
		w := newIdleWorld(t, func(client.Object) error { return nil })
		w.guards.environment = "staging"
		if reads, _ := live(w); !slices.Contains(reads, "get RemediationPolicy") || w.now().Status.EndingAs != "" || w.now().Status.Phase != v1alpha1.PlanCanceled {
			t.Errorf("the plan is %s after %v", w.now().Status.Phase, reads)
		}
	})
	t.Run("guards that cannot be read", func(t *testing.T) {
		w := newIdleWorld(t, func(client.Object) error { return nil })
		w.guards.err = errNetwork
		if reads, _ := live(w); !slices.Contains(reads, "get RemediationPolicy") || w.now().Status.Phase != v1alpha1.PlanRunning {
			t.Errorf("the plan is %s after %v", w.now().Status.Phase, reads)
		}
	})
}
