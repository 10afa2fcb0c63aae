// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// A run goes to its end with a router of each set of capabilities that counts.
func TestARunEndsWithEachRouterThatCounts(t *testing.T) {
	for name, can := range map[string]traffic.Capabilities{
		"with all capabilities":          traffic.FullCapabilities(),
		"with weights alone":             {Resolution: 1, Knowledge: traffic.Proven, Outcomes: true},
		"that only accepts":              {Resolution: 1, Knowledge: traffic.Accepted, Outcomes: true, InFlight: true},
		"whose shares are tenths":        {Resolution: 10, Knowledge: traffic.Accepted, Outcomes: true},
		"that needs the API server":      {Sticky: true, Resolution: 1, Knowledge: traffic.Proven, Outcomes: true, InFlight: true},
		"that knows no requests on hand": {Sticky: true, HeaderMap: true, Override: true, Resolution: 1, Knowledge: traffic.Proven, Outcomes: true, RollbackWithoutAPIServer: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := rolling(t)
			w.router.Limit(can)
			w.looks()
			for n := range uint64(12) {
				w.tells(n+1, 0)
				w.look()
			}
			if r := w.looks(); r.Status.Split != "canary 100 / stable 0" || r.Status.Rollout.Run.State != "Completed" {
				t.Errorf("in force is %q, and the run is %+v", r.Status.Split, r.Status.Rollout.Run)
			}
		})
	}
}

// A stage of a router that does not count waited for counts until a person looked at the release.
func TestARunWithoutCountsIsRefusedByTheNameOfTheCapability(t *testing.T) {
	w, _ := rolling(t)
	can := traffic.FullCapabilities()
	can.Outcomes = false
	w.router.Limit(can)
	w.looks()
	w.tells(1, 0)
	r := w.looks()
	if r.Status.Split != "stable 100 / canary 0" || r.Status.Rollout.Run != nil {
		t.Errorf("in force is %q, and the run is %+v", r.Status.Split, r.Status.Rollout.Run)
	}
	if c := conditionOf(r, v1alpha1.ConditionProgressing); !strings.Contains(c.Message, "spec.rollout: the router lacks the capability Outcomes") {
		t.Errorf("Progressing is %+v", c)
	}
}

// A router that needs a capability for the split of the release keeps in force what was.
func TestASplitIsRefusedByTheNameOfTheCapability(t *testing.T) {
	w := newWorld(t)
	w.looks()
	can := traffic.FullCapabilities()
	can.Override = false
	w.router.Limit(can)
	w.edit(func(r *v1alpha1.ABRelease) { r.Spec.TrafficSplit.OverrideHeader = "x-variation" })
	r := w.looks()
	if c := conditionOf(r, v1alpha1.ConditionStalled); r.Status.Split != "stable 90 / canary 10" || c.Reason != reasonInvalid ||
		!strings.Contains(c.Message, "the router lacks the capability Override: header x-variation names a variation") {
		t.Errorf("the split is %q, Stalled %+v", r.Status.Split, c)
	}
}

// A balancer answers before it acts: its old targets lost their pods while requests still went there.
func TestTheClockOfAStageBeginsWhenAnAcceptedSplitCounts(t *testing.T) {
	w, _ := rolling(t)
	w.router.Limit(traffic.Capabilities{Resolution: 1, Knowledge: traffic.Accepted, Outcomes: true})
	w.looks()
	settled := w.clock.Now().Add(time.Minute)
	w.router.SettleAt(settled)
	w.clock.Step(59 * time.Second)
	r := w.look()
	if stage := r.Status.Rollout.Run.Stages[0]; r.Status.Split != "stable 90 / canary 10" || stage.StartTime != nil {
		t.Errorf("the split %q does not count yet, and its stage began at %s", r.Status.Split, stage.StartTime)
	}
	if c := conditionOf(r, v1alpha1.ConditionAcknowledged); c.Status != "False" || !strings.Contains(c.Message, "the router has accepted it, and it counts from "+settled.Format(time.RFC3339)) {
		t.Errorf("Acknowledged is %+v", c)
	}
	w.clock.Step(time.Second)
	if stage := w.looks().Status.Rollout.Run.Stages[0]; stage.StartTime == nil || stage.StartTime.Time.Before(settled) {
		t.Errorf("the split counts from %s on, and its stage began at %s", settled, stage.StartTime)
	}
}
