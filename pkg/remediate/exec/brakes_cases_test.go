// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// haltLedger is what a person does to stop all that a ledger grants.
func haltLedger(w *world, name string) {
	w.Helper()
	l := &v1alpha1.RemediationLedger{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}, Spec: v1alpha1.RemediationLedgerSpec{Scope: scopeOf(name)},
	}
	_ = w.Client.Create(w.Context(), l) // it may be there already
	change(w, types.NamespacedName{Namespace: w.Namespace, Name: name}, &v1alpha1.RemediationLedger{}, func(l *v1alpha1.RemediationLedger) {
		l.Spec.Halt = &v1alpha1.LedgerHalt{RequestedBy: "alice", Reason: "an incident"}
	})
}

// brakes are all that may hold a plan back, one by one: what is read of each before
// a step begins, and what a plan does when the brake is put on after its step was
// granted a place in the ledgers. No brake but the last one lets a write through.
var brakes = map[string]struct {
	put   func(*world)
	reads protocol.Brakes
	then  string
	write bool
}{
	"the policy is gone": {
		put:   func(w *world) { w.remove(w.policy) },
		reads: protocol.Brakes{Known: true, Halted: "its policy is gone"},
		then:  "Canceled: its policy is gone",
	},
	"another policy has the name": {
		put: func(w *world) {
			w.remove(w.policy)
			other := w.newPolicy()
			if err := w.Client.Create(w.Context(), other); err != nil {
				w.Fatal(err)
			}
		},
		reads: protocol.Brakes{Known: true, Halted: "its policy is gone"},
		then:  "Canceled: its policy is gone",
	},
	"the policy is being deleted": {
		put: func(w *world) {
			w.changePolicy(func(p *v1alpha1.RemediationPolicy) { p.Finalizers = []string{"example.com/wait"} })
			w.remove(w.policy)
		},
		reads: protocol.Brakes{Known: true, Halted: "its policy is gone"},
		then:  "Canceled: its policy is gone",
	},
	"the policy cannot be read": {
		put:  func(w *world) { w.failing("get RemediationPolicy", errNetwork) },
		then: "Running: the causes of a wait could not be read",
	},
	"the policy is halted": {
		put: func(w *world) {
			w.changePolicy(func(p *v1alpha1.RemediationPolicy) {
				p.Spec.Mode, p.Spec.RequestedBy = v1alpha1.PolicyModeHalted, "bob"
			})
		},
		reads: protocol.Brakes{Known: true, Halted: "its policy is halted", HaltedBy: "bob"},
		then:  "Canceled: its policy is halted (bob)",
	},
	"the policy only observes": {
		put: func(w *world) {
			w.changePolicy(func(p *v1alpha1.RemediationPolicy) {
				p.Spec.Mode, p.Spec.RequestedBy = v1alpha1.PolicyModeObserveOnly, "bob"
			})
		},
		reads: protocol.Brakes{Known: true, Halted: "its policy is no longer active", HaltedBy: "bob"},
		then:  "Canceled: its policy is no longer active (bob)",
	},
	"the policy has an unknown mode": {
		put:   func(w *world) { w.changePolicy(func(p *v1alpha1.RemediationPolicy) { p.Spec.Mode = "Dreaming" }) },
		reads: protocol.Brakes{Known: true, Halted: "its policy has a mode that this version does not know"},
		then:  "Canceled: its policy has a mode that this version does not know",
	},
	"the cluster's ledger is halted": {
		put:   func(w *world) { haltLedger(w, ClusterLedger) },
		reads: protocol.Brakes{Known: true, Halted: "an incident", HaltedBy: "alice"},
		then:  "Canceled: an incident (alice)",
	},
	"the Environment's ledger is halted": {
		put:   func(w *world) { haltLedger(w, "production") },
		reads: protocol.Brakes{Known: true, Halted: "an incident", HaltedBy: "alice"},
		then:  "Canceled: an incident (alice)",
	},
	"a ledger cannot be read": {
		put:  func(w *world) { w.failing("get RemediationLedger", errNetwork) },
		then: "Running: the causes of a wait could not be read",
	},
	"the guards cannot be read": {
		put:  func(w *world) { w.guards.err = errNetwork },
		then: "Running: the causes of a wait could not be read",
	},
	"the policy moved to another Environment": {
		put: func(w *world) {
			w.changePolicy(func(p *v1alpha1.RemediationPolicy) { p.Spec.EnvironmentName = "staging" })
		},
		reads: protocol.Brakes{Known: true, Halted: "it is for Environment production, and its policy for staging"},
		then:  "Canceled: it is for Environment production, and its policy for staging",
	},
	"the namespace moved to another Environment": {
		put:   func(w *world) { w.guards.environment = "staging" },
		reads: protocol.Brakes{Known: true, Halted: `its namespace belongs to Environment "staging", and its policy is for production`},
		then:  `Canceled: its namespace belongs to Environment "staging", and its policy is for production`,
	},
	"the namespace belongs to no Environment any more": {
		put:   func(w *world) { w.guards.environment = "" },
		reads: protocol.Brakes{Known: true, Halted: `its namespace belongs to Environment "", and its policy is for production`},
		then:  `Canceled: its namespace belongs to Environment "", and its policy is for production`,
	},
	"a guard sees a mass drift": {
		put:   func(w *world) { w.guards.frozen["web"] = "ClusterSpecGuard/shop" },
		reads: protocol.Brakes{Known: true, MaximumTargets: 10, Closed: "ClusterSpecGuard/shop sees a mass drift: one cause is assumed, and a person has to look"},
		then:  "Running: ClusterSpecGuard/shop sees a mass drift: one cause is assumed, and a person has to look",
	},
	"a run of a release has the target": {
		put: func(w *world) { w.Rollouts = fakeRollouts{holder: "run 3 of ABRelease web"} },
		reads: protocol.Brakes{
			Known: true, MaximumTargets: 10, Until: epoch.Add(10 * time.Second),
			Closed: "RolloutUnderWay: run 3 of ABRelease web is under way: a repair would change its measurements, and waits for its end",
		},
		then: "Running: RolloutUnderWay: run 3 of ABRelease web is under way: a repair would change its measurements, and waits for its end",
	},
	"no run of a release has the target": {
		put:   func(w *world) { w.Rollouts = fakeRollouts{} },
		reads: protocol.Brakes{Known: true, MaximumTargets: 10, ClosesAt: epoch.Add(time.Hour)},
		then:  "Succeeded: ", write: true,
	},
	"the releases cannot be read": {
		put:   func(w *world) { w.Rollouts = fakeRollouts{err: errNetwork} },
		reads: protocol.Brakes{MaximumTargets: 10},
		then:  "Running: the causes of a wait could not be read",
	},
	"the Environment is gone": {
		put: func(w *world) {
			w.remove(&v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "production"}})
		},
		reads: protocol.Brakes{Known: true, MaximumTargets: 10, Closed: "its Environment production is gone"},
		then:  "Running: its Environment production is gone",
	},
	"the Environment cannot be read": {
		put:   func(w *world) { w.failing("get Environment", errNetwork) },
		reads: protocol.Brakes{MaximumTargets: 10},
		then:  "Running: the causes of a wait could not be read",
	},
	"evidence cannot be written": {
		put:   func(w *world) { w.records.notReady = errors.New("disk full") },
		reads: protocol.Brakes{Known: true, MaximumTargets: 10, ClosesAt: epoch.Add(time.Hour)}, // the store is asked later
		then:  "Running: evidence cannot be written: disk full",
	},
	"the window closed": {
		put:   func(w *world) { w.clock.now = epoch.Add(2 * time.Hour) },
		reads: protocol.Brakes{Known: true, MaximumTargets: 10, Closed: "outside the allowed times 09:00-11:00 Etc/UTC; opens Tue 2026-03-03 09:00 UTC (in 21h)", Until: epoch.Add(23 * time.Hour), OutsideSchedule: true},
		then:  "Deferred: outside the allowed times 09:00-11:00 Etc/UTC; opens Tue 2026-03-03 09:00 UTC (in 21h)",
	},
	"the own clock cannot be trusted": {
		put:   func(w *world) { w.clock.skew = time.Hour },
		reads: protocol.Brakes{Known: true, MaximumTargets: 10, Closed: "the own clock is 1h0m0s ahead of the API server's, more than 5s"},
		then:  "Running: the own clock is 1h0m0s ahead of the API server's, more than 5s",
	},
	"the zones of the schedule are gone": {
		put: func(w *world) {
			w.Zones = func(string) (*time.Location, error) { return nil, errors.New("no zones") }
		},
		reads: protocol.Brakes{Known: true, MaximumTargets: 10, Closed: `spec.schedule.maintenanceWindow.timeZone: Invalid value: "Etc/UTC": write an IANA time zone such as Europe/Berlin, or UTC (no zones)`},
		then:  `Running: spec.schedule.maintenanceWindow.timeZone: Invalid value: "Etc/UTC": write an IANA time zone such as Europe/Berlin, or UTC (no zones)`,
	},
	// D8 of the review of remediation: a plan that had waited for its window wrote while none
	// of the other objects was healthy.
	"too few of the other objects are healthy": {
		put: func(w *world) { w.counts(5, 3) },
		reads: protocol.Brakes{
			Known: true, MaximumTargets: 10, Closed: "5 of the 8 objects that did not drift are healthy, 75 % must be", Until: epoch.Add(10 * time.Second),
		},
		then: "Running: 5 of the 8 objects that did not drift are healthy, 75 % must be",
	},
	"enough of the other objects are healthy": {
		put:   func(w *world) { w.counts(6, 2) },
		reads: protocol.Brakes{Known: true, MaximumTargets: 10, ClosesAt: epoch.Add(time.Hour)},
		then:  "Succeeded: ", write: true,
	},
	"the objects of an earlier policy were counted": {
		put: func(w *world) {
			w.counts(0, 8)
			w.changePolicy(func(p *v1alpha1.RemediationPolicy) { p.Status.Digest = "sha256:earlier" })
		},
		reads: protocol.Brakes{Known: true, MaximumTargets: 10, ClosesAt: epoch.Add(time.Hour)},
		then:  "Succeeded: ", write: true,
	},
	"the policy has changed": {
		put: func(w *world) {
			w.changePolicy(func(p *v1alpha1.RemediationPolicy) { p.Spec.Safety.MaxTargets = 1 })
		},
		reads: protocol.Brakes{Known: true, MaximumTargets: 1, Superseded: "its policy has changed", ClosesAt: epoch.Add(time.Hour)},
		then:  "Superseded: ",
	},
}
