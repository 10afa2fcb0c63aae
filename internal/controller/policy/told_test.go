// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/planning/planningtest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// Each restart of the assessor told people again of all that they had to decide.
func TestARestartDoesNotTellAgainOfWhatWasDelivered(t *testing.T) {
	tests := map[string]struct {
		// after is how long the assessor goes on after it has told people.
		after time.Duration
		want  int
	}{
		"a message that may be on its way is told again": {notify.DefaultRetry.Deadline - time.Second, 2},
		"a message of before that is not":                {notify.DefaultRetry.Deadline, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(c *planningtest.Cluster) { c.Policy.Spec.Action = v1alpha1.ActionNotifyOnly })
			if result := b.look(); result.RequeueAfter <= 0 || result.RequeueAfter > notify.DefaultRetry.Deadline {
				t.Errorf("it looks again in %s, and its status would not keep what was told", result.RequeueAfter)
			}
			b.clock.SetTime(epoch.Add(test.after))
			b.look()
			kept := b.version()
			b.look()
			if again := b.version(); again != kept {
				t.Error("a look without news wrote the status")
			}
			b.r.told = memory{}
			b.look()
			if len(b.told) != test.want {
				t.Errorf("people were told %d times, want %d", len(b.told), test.want)
			}
		})
	}
}

// version is the resourceVersion of the policy.
func (b *bench) version() string {
	b.Helper()
	p := &v1alpha1.RemediationPolicy{}
	if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(b.Policy), p); err != nil {
		b.Fatal(err)
	}
	return p.ResourceVersion
}

// The status has room for a bounded number; the most severe ones go first.
func TestTheStatusKeepsTheMostSevereOfWhatWasTold(t *testing.T) {
	var m memory
	p := &v1alpha1.RemediationPolicy{}
	var all []escalation
	for i := range maxTold {
		all = append(all, escalation{driftOf(fmt.Sprint("o", i), v1alpha1.SeverityLow), "", "why"})
	}
	severe := escalation{driftOf("severe", v1alpha1.SeverityCritical), "", "why"}
	m.news(p, append(all, severe), epoch)
	told, next := m.kept(p, epoch.Add(notify.DefaultRetry.Deadline))
	if len(told) != maxTold || told[0].ID != severe.id() || !next.IsZero() {
		t.Errorf("%d are kept, the first at %s; more are kept from %s on", len(told), told[0].Severity, next)
	}
}
