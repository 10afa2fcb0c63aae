// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

func TestARuleOfPeopleDecidesInPlaceOfTheBuiltInOne(t *testing.T) {
	const (
		plain   = `{"metadata":{"generation":2},"spec":{}}`
		happy   = `{"metadata":{"generation":2},"status":{"phase":"Happy"}}`
		unready = `{"metadata":{"generation":2},"status":{"conditions":[{"type":"Ready","status":"False"}]}}`
	)
	yes := func([]byte) (bool, error) { return true, nil }
	no := func([]byte) (bool, error) { return false, nil }
	fails := func([]byte) (bool, error) { return false, errors.New("no such key: status") }
	both := func([]byte) (bool, error) { return true, errors.New("no such key: status") }
	long := func([]byte) (bool, error) { return false, errors.New(strings.Repeat("long ", 1000)) }
	reads := func(object []byte) (bool, error) { return string(object) == happy, nil }
	type told struct {
		State   State
		Message string
	}
	holds := told{Ready, "the rule in GuardDefaults/platform holds"}
	holdsNot := told{NotReady, "the rule in GuardDefaults/platform does not hold"}
	broken := told{NotReady, "the rule in GuardDefaults/platform fails: no such key: status"}
	tests := map[string]struct {
		gvk    canon.GVK
		object string
		status Status
		rule   func([]byte) (bool, error)
		want   told
	}{
		"it holds":                                    {widgets, plain, StatusReported, yes, holds},
		"it does not hold":                            {widgets, plain, StatusNone, no, holdsNot},
		"it fails, which is not ready":                {widgets, plain, StatusNone, fails, broken},
		"it fails and holds, which is not ready":      {widgets, plain, StatusNone, both, broken},
		"it reads the whole object":                   {widgets, happy, StatusNone, reads, holds},
		"it holds against the condition Ready":        {widgets, unready, StatusReported, yes, holds},
		"it holds of a kind of Kubernetes":            {deployments, plain, StatusUnknown, yes, holds},
		"it does not hold of a kind that is stored":   {configMaps, plain, StatusUnknown, no, holdsNot},
		"it holds of an object that is being deleted": {widgets, `{"metadata":{"deletionTimestamp":"2026-01-02T03:04:05Z"}}`, StatusNone, yes, told{NotReady, "it is being deleted"}},
		"it holds of an older generation":             {widgets, `{"metadata":{"generation":2},"status":{"observedGeneration":1}}`, StatusReported, yes, told{NotReady, "generation 2 was not looked at yet, only 1"}},
		"it holds of an object that is stalled":       {widgets, `{"status":{"conditions":[{"type":"Stalled","status":"True","message":"bad spec"}]}}`, StatusReported, yes, told{NotReady, "it is stalled: bad spec"}},
		"what cannot be read":                         {widgets, `{} {}`, StatusNone, yes, told{Unknown, ""}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state, message := Judge([]byte(test.object), test.gvk, Knowledge{Status: test.status, Rule: &Rule{Source: "GuardDefaults/platform", Holds: test.rule}})
			if test.want.Message == "" {
				message = ""
			}
			if diff := cmp.Diff(test.want, told{state, message}); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
	if _, message := Judge([]byte(plain), widgets, Knowledge{Rule: &Rule{Source: "GuardDefaults/platform", Holds: long}}); len(message) > maxQuoted+64 {
		t.Errorf("the message has %d bytes", len(message))
	}
}
