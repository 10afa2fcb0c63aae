// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"strings"
	"testing"
)

const (
	smallestRequest    = `{policyName: production, requestedBy: alice, targets: [{baselineName: deployments.apps.web, driftedHash: 'pl1:sha256:aa'}]}`
	requestIsImmutable = "a RemediationRequest is immutable; create another"
)

func TestRemediationRequest_Fields(t *testing.T) {
	target := func(name string) string { return "{baselineName: " + name + ", driftedHash: 'pl1:sha256:aa'}" }
	targets := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, target("b"+strings.Repeat("x", i)))
		}
		return "targets: [" + strings.Join(all, ", ") + "]"
	}
	cases := map[string]specCase{
		"the smallest is accepted":               {},
		"ten targets are accepted":               {spec: targets(10)},
		"eleven are refused":                     {targets(11), []string{"spec.targets"}, "must have at most 10 items"},
		"no target is refused":                   {"targets: []", []string{"spec.targets"}, "should have at least 1 items"},
		"one target twice is refused":            {"targets: [" + target("b") + ", " + target("b") + "]", []string{"spec.targets[1]"}, "Duplicate value"},
		"a target without a hash is refused":     {"targets: [{baselineName: b}]", []string{"spec.targets[0].driftedHash"}, "Required value"},
		"a target without a Baseline is refused": {"targets: [{driftedHash: h}]", []string{"spec.targets[0].baselineName"}, "Required value"},
		"a target with a revision is accepted":   {spec: "targets: [{baselineName: b, driftedHash: h, revision: b-3}]"},
		"a request of no policy is refused":      {"policyName: null", []string{"spec.policyName"}, "Required value"},
		"a request of nobody is refused":         {"requestedBy: null", []string{"spec.requestedBy"}, "Required value"},
		"a request of an empty name is refused":  {"requestedBy: ''", []string{"spec.requestedBy"}, "should be at least 1 chars"},
		"a request with groups is accepted":      {spec: "requestedByGroups: [sre, dev]"},
		"one group twice is refused":             {"requestedByGroups: [sre, sre]", []string{"spec.requestedByGroups[1]"}, "Duplicate value"},
		"a reason is accepted":                   {spec: "reason: INC-9"},
		"an overlong reason is refused":          {"reason: " + strings.Repeat("r", 257), []string{"spec.reason"}, "may not be more than 256"},
	}
	runSpecCases(t, "RemediationRequest", smallestRequest, cases)
	// Tried by TestRemediationRequest_Transitions, because it needs a stored request.
	cases["the spec is immutable"] = specCase{"", []string{"spec"}, requestIsImmutable}
	demandEveryRuleTried(t, "RemediationRequest", "spec", cases)
}

func TestRemediationRequest_Transitions(t *testing.T) {
	create(t, object(t, "RemediationRequest", "transitions", smallestRequest))
	runPatchCases(t, "RemediationRequest", "transitions", dryPatch, map[string]patchCase{
		"another policy is refused":    {`{"spec":{"policyName":"other"}}`, []string{"spec"}, requestIsImmutable},
		"another name is refused":      {`{"spec":{"requestedBy":"bob"}}`, []string{"spec"}, requestIsImmutable},
		"a reason afterwards is":       {`{"spec":{"reason":"r"}}`, []string{"spec"}, requestIsImmutable},
		"removing the spec is refused": {`{"spec":null}`, []string{"spec"}, "Required value"},
	})
}

func TestRemediationRequest_Status(t *testing.T) {
	create(t, object(t, "RemediationRequest", "status", smallestRequest))
	runPatchCases(t, "RemediationRequest", "status", statusPatch, map[string]patchCase{
		"a plan is accepted":             {patch: `{"status":{"outcome":"Planned","planName":"p","answerTime":"2026-01-01T00:00:00Z"}}`},
		"a refusal is accepted":          {patch: `{"status":{"outcome":"Refused","message":"m","leftOut":[{"baselineName":"b","reason":"BlastRadius","message":"m"}]}}`},
		"an unknown outcome is refused":  {`{"status":{"outcome":"Maybe"}}`, []string{"status.outcome"}, "Unsupported value"},
		"an overlong message is refused": {`{"status":{"message":"` + strings.Repeat("m", 513) + `"}}`, []string{"status.message"}, "may not be more than 512"},
	})
}
