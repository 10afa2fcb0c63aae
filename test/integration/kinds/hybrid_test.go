// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"testing"
)

const (
	pairs         = `{name: stable, workload: {kind: Deployment, name: web}, group: {kind: Deployment, name: worker}}, {name: canary, workload: {kind: Deployment, name: web-next}, group: {kind: Deployment, name: worker-next}}`
	hybridRollout = `rollout: {strategyName: a, model: Hybrid, requestedBy: alice}`
	hybridRelease = `{serviceName: web, stable: stable, variations: [` + pairs + `], trafficSplit: {type: Percentage, percentages: {stable: 100, canary: 0}}, ` + hybridRollout + `}`
)

func TestABRelease_Hybrid(t *testing.T) {
	const to, model, service = "spec.variations", "spec.rollout", "spec.serviceName"
	variations := func(canary string) string {
		return "variations: [{name: stable, workload: {kind: Deployment, name: web}, group: {kind: Deployment, name: worker}}, " + canary + "]"
	}
	runSpecCases(t, "ABRelease", hybridRelease, map[string]specCase{
		"two workloads with groups are accepted":           {},
		"visitors that stay are accepted":                  {spec: "trafficSplit: {type: Sticky, sticky: {cookie: a}, percentages: {stable: 100, canary: 0}}"},
		"a header that overrides is accepted":              {spec: "trafficSplit: {type: Percentage, overrideHeader: x, percentages: {stable: 100, canary: 0}}"},
		"a StatefulSet beside a group of it is accepted":   {spec: variations("{name: canary, workload: {kind: StatefulSet, name: web-next}, group: {kind: Deployment, name: worker-next}}")},
		"no Service is refused":                            {"serviceName: null", []string{service}, "give serviceName with them, and leave it out with TargetGroup"},
		"a variation without a group is refused":           {variations("{name: canary, workload: {kind: Deployment, name: web-next}}"), []string{to}, "each variation is a workload with a group"},
		"a variation without a workload is refused":        {variations("{name: canary, group: {kind: Deployment, name: worker-next}}"), []string{to}, "each variation is a workload with a group"},
		"a clone with a group is refused":                  {variations("{name: canary, clone: {image: x, podLabels: {a: b}}, group: {kind: Deployment, name: worker-next}}"), []string{to + "[1]", to, model + ".promotion"}, "or a workload with a group"},
		"a selector with a group is refused":               {variations("{name: canary, selector: {matchLabels: {a: b}}, group: {kind: Deployment, name: worker-next}}"), []string{to + "[1]", to}, "or a workload with a group"},
		"a workload that is its own group is refused":      {variations("{name: canary, workload: {kind: Deployment, name: web-next}, group: {kind: Deployment, name: web-next}}"), []string{to}, "cannot be a group"},
		"a workload that is the other's group is refused":  {variations("{name: canary, workload: {kind: Deployment, name: worker}, group: {kind: Deployment, name: worker-next}}"), []string{to}, "cannot be a group"},
		"one group for both is refused":                    {variations("{name: canary, workload: {kind: Deployment, name: web-next}, group: {kind: Deployment, name: worker}}"), []string{to}, "two variations have the same group"},
		"the model Router with groups is refused":          {"rollout: {strategyName: a, model: Router, requestedBy: alice}", []string{to}, "no group with the model Router"},
		"the model TargetGroup with a workload is refused": {"rollout: {strategyName: a, model: TargetGroup, requestedBy: alice}", []string{service, to}, "leave it out with TargetGroup"},
		"no requester is refused":                          {"rollout: {strategyName: a, model: Hybrid}", []string{model + ".requestedBy"}, "set requestedBy to the user"},
		"a minimum of an autoscaler is refused":            {"rollout: {strategyName: a, model: Hybrid, requestedBy: alice, fallback: HoldMinReplicas}", []string{model + ".fallback"}, "leave fallback out"},
		"a promotion into the baseline is refused":         {"rollout: {strategyName: a, model: Hybrid, requestedBy: alice, promotion: UpdateBaseline}", []string{model + ".promotion"}, "use KeepVariation"},
	})
}

func TestABRelease_TheModelIsImmutable(t *testing.T) {
	create(t, object(t, "ABRelease", "hybrid", hybridRelease))
	const to = "spec.variations"
	runPatchCases(t, "ABRelease", "hybrid", dryPatch, map[string]patchCase{
		"another strategy is accepted": {patch: `{"spec":{"rollout":{"strategyName":"b"}}}`},
		"another workload is accepted": {patch: `{"spec":{"variations":[{"name":"stable","workload":{"kind":"Deployment","name":"web"},"group":{"kind":"Deployment","name":"worker"}},{"name":"canary","workload":{"kind":"Deployment","name":"other"},"group":{"kind":"Deployment","name":"worker-next"}}]}}`},
		"another group is refused":     {`{"spec":{"variations":[{"name":"stable","workload":{"kind":"Deployment","name":"web"},"group":{"kind":"Deployment","name":"worker"}},{"name":"canary","workload":{"kind":"Deployment","name":"web-next"},"group":{"kind":"Deployment","name":"other"}}]}}`, []string{to + "[1].group"}, "a group is immutable"},
		"the model Router is refused":  {`{"spec":{"rollout":{"model":"Router"},"variations":[{"name":"stable","workload":{"kind":"Deployment","name":"web"}},{"name":"canary","workload":{"kind":"Deployment","name":"web-next"}}]}}`, []string{"spec.rollout"}, "the model is immutable"},
		"no rollout is refused":        {`{"spec":{"rollout":null,"variations":[{"name":"stable","workload":{"kind":"Deployment","name":"web"}},{"name":"canary","workload":{"kind":"Deployment","name":"web-next"}}]}}`, []string{"spec.rollout"}, "the model is immutable"},
	})
}
