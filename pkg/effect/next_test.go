// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const minute = time.Minute

func newAssessment() *Assessment {
	return &Assessment{
		Windows: Windows{Stabilization: 5 * minute, AlertDelay: 2 * minute, Validity: 30 * minute}, Executed: true,
		WrittenTime: written, Written: Body{UID: "u", Hash: "pl1:a", Generation: 4},
	}
}

var (
	unchanged = Live{Read: true, Body: Body{"u", "pl1:a", 4}}
	changed   = Live{Read: true, Body: Body{"u", "pl1:b", 5}}
)

func TestNextOfAnAssessment(t *testing.T) {
	off, away, well := Component{State: NotConfigured}, Component{State: NotAnswered}, assessed(10_000)
	tests := map[string]struct {
		change func(*Assessment)
		after  time.Duration
		live   Live
		clock  bool // not compared
		want   Decision
	}{
		"right after the write it watches the hash": {nil, 0, unchanged, false, Decision{Phase: Stabilizing, Integrity: SpecUnchanged, Until: written.Add(5 * minute)}},
		"a write that has to arrive":                {func(a *Assessment) { a.Propagation = minute }, 0, unchanged, false, Decision{Phase: WaitingForPropagation, Integrity: SpecUnchanged, Until: written.Add(minute)}},
		"another writer right after the write":      {nil, time.Second, changed, false, Decision{Phase: Completed, Integrity: SpecDrifted, Reason: SpecDrift}},
		"another writer when all is assessed but one": {func(a *Assessment) { a.Components = Components{well, well, away} }, 20 * minute, changed, false,
			Decision{Phase: Completed, Integrity: SpecDrifted, Reason: SpecDrift}},
		"another writer, of which no clock tells when":    {nil, 0, changed, true, Decision{Phase: Completed, Integrity: SpecDrifted, Reason: SpecDrift}},
		"nothing expires by a clock that is not compared": {nil, 48 * time.Hour, unchanged, true, Decision{Phase: Pending, Integrity: SpecUnchanged}},
		"a target that cannot be read is no drift":        {nil, 0, Live{}, false, Decision{Phase: Stabilizing, Integrity: IntegrityUnknown, Until: written.Add(5 * minute)}},
		"nothing was written":                             {func(a *Assessment) { a.Executed = false }, 0, Live{}, false, Decision{Phase: Completed, Integrity: IntegrityUnknown, Reason: NoExecution}},
		"it is stable, and alerts are not asked for yet": {nil, 5 * minute, unchanged, false,
			Decision{Phase: Assessing, Integrity: SpecUnchanged, Ask: []Name{Health, Metrics}, Until: written.Add(5*minute + probe)}},
		"shortly before the alerts it looks in time": {nil, 7*minute - time.Second, unchanged, false,
			Decision{Phase: Assessing, Integrity: SpecUnchanged, Ask: []Name{Health, Metrics}, Until: written.Add(7 * minute)}},
		"alerts are asked for when they are due, however soon after the last look": {
			func(a *Assessment) { a.Health, a.Metrics, a.AskedTime = well, away, written.Add(7*minute-time.Second) }, 7 * minute, unchanged, false,
			Decision{Phase: Assessing, Integrity: SpecUnchanged, Ask: []Name{Alerts, Metrics}, Until: written.Add(7*minute + probe)},
		},
		"an event between two looks asks nobody": {
			func(a *Assessment) {
				a.Health, a.Alerts, a.Metrics, a.AskedTime = well, well, away, written.Add(10*minute)
			}, 10*minute + time.Second, unchanged, false,
			Decision{Phase: Assessing, Integrity: SpecUnchanged, Until: written.Add(10*minute + probe)},
		},
		"what did not answer is asked again": {
			func(a *Assessment) {
				a.Health, a.Alerts, a.Metrics, a.AskedTime = well, well, away, written.Add(10*minute)
			}, 10*minute + probe, unchanged, false,
			Decision{Phase: Assessing, Integrity: SpecUnchanged, Ask: []Name{Metrics}, Until: written.Add(10*minute + 2*probe)},
		},
		"all that is configured has answered": {func(a *Assessment) { a.Components = Components{well, off, off} }, 6 * minute, unchanged, false,
			Decision{Phase: Completed, Integrity: SpecUnchanged, Reason: Full}},
		"the hash is not known yet, so it is not complete": {func(a *Assessment) { a.Components, a.AskedTime = Components{well, off, off}, written.Add(6*minute) }, 6 * minute, Live{}, false,
			Decision{Phase: Assessing, Integrity: IntegrityUnknown, Until: written.Add(6*minute + probe)}},
		"an alert that may decay is looked at again, with all else": {
			func(a *Assessment) { a.Components, a.Decaying = Components{well, bad(), well}, true }, 10 * minute, unchanged, false,
			Decision{Phase: Assessing, Integrity: SpecUnchanged, Ask: []Name{Health, Alerts, Metrics}, Until: written.Add(10*minute + probe)},
		},
		"an alert of an ill workload does not decay": {
			func(a *Assessment) { a.Components, a.Decaying = Components{assessed(5_000), bad(), well}, true }, 10 * minute, unchanged, false,
			Decision{Phase: Completed, Integrity: SpecUnchanged, Reason: Full},
		},
		"a new alert completes it": {func(a *Assessment) { a.Components = Components{well, bad(), well} }, 10 * minute, unchanged, false,
			Decision{Phase: Completed, Integrity: SpecUnchanged, Reason: Full}},
		"the last look is at the deadline": {func(a *Assessment) { a.Components = Components{well, well, away} }, 30*minute - time.Second, unchanged, false,
			Decision{Phase: Assessing, Integrity: SpecUnchanged, Ask: []Name{Metrics}, Until: written.Add(30 * minute)}},
		"at the deadline the alert decays":                              {func(a *Assessment) { a.Components, a.Decaying = Components{well, bad(), off}, true }, 30 * minute, unchanged, false, Decision{Phase: Completed, Integrity: SpecUnchanged, Reason: AlertDecayTimeout}},
		"at the deadline the metrics are missing":                       {func(a *Assessment) { a.Components = Components{well, well, away} }, 30 * minute, unchanged, false, Decision{Phase: Completed, Integrity: SpecUnchanged, Reason: MetricsTimedOut}},
		"at the deadline the alerts are missing":                        {func(a *Assessment) { a.Components = Components{well, away, well} }, 30 * minute, unchanged, false, Decision{Phase: Completed, Integrity: SpecUnchanged, Reason: Partial}},
		"at the deadline nothing has answered":                          {func(a *Assessment) { a.Components = Components{away, away, away} }, 30 * minute, unchanged, false, Decision{Phase: Completed, Integrity: SpecUnchanged, Reason: Expired}},
		"at the deadline the metrics alone are configured, and missing": {func(a *Assessment) { a.Components = Components{away, off, away} }, 30 * minute, unchanged, false, Decision{Phase: Completed, Integrity: SpecUnchanged, Reason: Expired}},
		"defect 13: an assessor that was away goes on to assess": {func(a *Assessment) { a.Propagation = minute }, 10 * minute, unchanged, false,
			Decision{Phase: Assessing, Integrity: SpecUnchanged, Ask: []Name{Health, Alerts, Metrics}, Until: written.Add(10*minute + probe)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := newAssessment()
			if tc.change != nil {
				tc.change(a)
			}
			got := Next(a, Facts{Now: written.Add(tc.after), TimeUnknown: tc.clock, Live: tc.live})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the decision differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnAssessmentEndsOnceWhateverTheSourcesAnswer carries assessments out with answers, restarts and
// events in any order. A finite number of looks completes each one, at the deadline at the latest.
func TestAnAssessmentEndsOnceWhateverTheSourcesAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newAssessment()
		a.Propagation = rapid.SampledFrom([]time.Duration{0, minute}).Draw(t, "propagation")
		for _, name := range []Name{Alerts, Metrics} {
			if rapid.Bool().Draw(t, string(name)+" is not configured") {
				a.Of(name).State = NotConfigured
			}
		}
		deadline := a.Schedule(written).Deadline
		now, asked := written, 0
		for looks := range 400 {
			live := rapid.SampledFrom([]Live{unchanged, unchanged, unchanged, {}}).Draw(t, "live")
			d := Next(a, Facts{Now: now, Live: live})
			if d.Reason != "" {
				if d.Phase != Completed || now.Before(deadline) && d.Reason != Full {
					t.Fatalf("it ends as %s %s after %s", d.Phase, d.Reason, now.Sub(written))
				}
				return
			}
			if !d.Until.After(now) || d.Until.After(deadline) {
				t.Fatalf("look %d at %s waits until %s", looks, now, d.Until)
			}
			for _, name := range d.Ask {
				asked++
				*a.Of(name) = rapid.SampledFrom([]Component{assessed(10_000), assessed(5_000), bad(), {State: NotAnswered}}).Draw(t, string(name))
				if name == Alerts {
					a.Decaying = a.Alerts.Bad && rapid.Bool().Draw(t, "it decays")
				}
			}
			if len(d.Ask) > 0 {
				a.AskedTime = now
			}
			if now = d.Until; rapid.IntRange(0, 9).Draw(t, "an event comes first") == 0 {
				now = now.Add(-time.Second)
			}
		}
		t.Fatalf("it does not end in 400 looks, and asked %d times", asked)
	})
}
