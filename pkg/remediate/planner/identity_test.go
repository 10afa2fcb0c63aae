// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A policy said that the number of replicas did not change where the revision with the number was damaged.
func TestAScaleToANumberThatIsNotKnownNamesTheRevision(t *testing.T) {
	in := input(drift("web"))
	in.Policy.Spec.Action, in.Drifts[0].BodyLost = v1alpha1.ActionScale, true
	if o := ObstacleTo(in, &in.Drifts[0]); o.Reason != ReasonNotApplicable || !strings.Contains(o.Message, "revision web-4 is gone or damaged") {
		t.Errorf("left out for %s: %s", o.Reason, o.Message)
	}
}

// The plan after two others had the name of the second one when the first one was deleted. The API
// server has an object of that name, so no plan was made, and the drift stayed.
func TestAPlanAfterADeletedOneHasANameOfItsOwn(t *testing.T) {
	after := func(uids ...string) string {
		in := input(drift("web"))
		in.Drifts[0].Ended = uids
		return Make(in).Plans[0].Name
	}
	names := map[string]string{
		"the first plan": after(), "the second plan": after("a"), "the third plan": after("a", "b"),
		"the next plan once the first one is deleted": after("b"),
	}
	by := map[string]string{}
	for what, name := range names {
		if other, taken := by[name]; taken {
			t.Errorf("%s and %s have the name %s", what, other, name)
		}
		by[name] = what
	}
	if after("a", "b") != after("b", "a") {
		t.Error("the order of the ends of two plans names another plan")
	}
}
