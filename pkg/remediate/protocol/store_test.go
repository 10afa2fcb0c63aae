// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The store of the records is asked for what is about to begin or to be written, and for
// nothing else: a store that hangs holds up no brake, and no step that has written.
func TestTheStoreOfTheRecordsIsAskedLast(t *testing.T) {
	const deferred = "store Running, step Planned "
	full := &Store{Why: "evidence cannot be written: disk full", Until: epoch.Add(again)}
	asks := func(verb v1alpha1.PlanVerb) func(*State) {
		return func(s *State) { s.Plan.Spec.Control = v1alpha1.PlanControl{Verb: verb, RequestedBy: "alice"} }
	}
	brakes := func(b Brakes) func(*State) { return func(s *State) { s.Facts.Brakes = &b } }
	target := Target{Read: Yes, UID: "uid-0", ResourceVersion: "10", Generation: 1, Hash: driftedHash}
	intended := func(s *State) {
		s.Facts.Steps = map[int32]StepFacts{0: {Authorized: Yes, Target: &target, Revision: Yes, Tried: &Write{Result: Stored, Hash: desiredHash}}}
	}
	found := func(s *State) { s.Facts.Steps = map[int32]StepFacts{0: {Target: &target}} }
	nothing := func(*State) {}
	tests := map[string]struct {
		state *State
		more  func(*State)
		store *Store
		want  string
	}{
		"before a step begins":                           {running(v1alpha1.StepPlanned), nothing, nil, "protocol.AskStore {}"},
		"and a step without a record does not begin":     {running(v1alpha1.StepPlanned), nothing, full, deferred},
		"whoever asks for it":                            {running(v1alpha1.StepPlanned), asks(v1alpha1.PlanExecute), full, deferred},
		"before a step that was granted a place goes on": {running(v1alpha1.StepReserved), nothing, nil, "protocol.AskStore {}"},
		"before a write that was intended":               {running(v1alpha1.StepIntent), intended, nil, "protocol.AskStore {}"},
		"and nothing is written without a record":        {running(v1alpha1.StepIntent), intended, full, "store Running, step Planned "},
		"before an intent is made again":                 {running(v1alpha1.StepIntent), found, nil, "protocol.AskStore {}"},
		"for an urgent step in a closed window": {
			holdsNothing(two(1)), brakes(Brakes{Known: true, Closed: "the window is closed", OutsideSchedule: true, UrgentPasses: true}), nil, "protocol.AskStore {}",
		},
		"not for a step that a window holds back": {running(v1alpha1.StepPlanned), brakes(Brakes{Known: true, Closed: "the window is closed"}), nil, deferred},
		"not for brakes that cannot be read":      {running(v1alpha1.StepPlanned), brakes(Brakes{}), nil, "wait 5s: the causes of a wait could not be read"},
		"not for a step that has written":         {running(v1alpha1.StepApplied), nothing, nil, "protocol.ReadTarget {0}"},
		"not for the end of a step":               {running(v1alpha1.StepVerified), nothing, nil, "protocol.Settle {0 Succeeded}"},
		"not for a pause":                         {running(v1alpha1.StepIntent), asks(v1alpha1.PlanPause), nil, "store Sealing Paused by alice, step Intent "},
		"not for a cancellation":                  {running(v1alpha1.StepIntent), asks(v1alpha1.PlanCancel), nil, "store Sealing Canceled by alice, step Intent "},
		"not for a halt":                          {running(v1alpha1.StepIntent), brakes(Brakes{Known: true, Halted: "an incident", HaltedBy: "root"}), nil, "store Sealing Canceled by root, step Intent "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.state.Facts.Store = test.store
			test.more(test.state)
			if test.want == deferred && test.state.Plan.Status.Steps[0].State == v1alpha1.StepPlanned { // its places and its target are given back before
				holdsNothing(test.state)
			}
			if got := text(Next(test.state)); got != test.want {
				t.Errorf("next is %q, want %q", got, test.want)
			}
		})
	}
}

// What the store said is forgotten with the brakes: a place in the ledgers may take a while.
func TestTheStoreIsAskedAgainAfterAPlaceWasGranted(t *testing.T) {
	f := Facts{Brakes: &Brakes{Known: true}, Store: &Store{Ready: true}}
	if next := f.Without(Forget{Brakes: true}); next.Store != nil || next.Brakes != nil {
		t.Errorf("known are still %+v", next)
	}
	if next := f.Without(Forget{Steps: []int32{0}}); next.Store == nil || next.Brakes == nil {
		t.Errorf("forgotten is too much: %+v", next)
	}
}
