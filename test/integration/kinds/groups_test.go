// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"testing"
)

const (
	workers       = `{name: stable, group: {kind: Deployment, name: worker}}, {name: canary, group: {kind: Deployment, name: worker-next}}`
	groupsRelease = `{stable: stable, variations: [` + workers + `], trafficSplit: {type: Percentage, percentages: {stable: 100, canary: 0}}, ` + groupRollout + `}`
)

func TestABRelease_Groups(t *testing.T) {
	const to, model, service = "spec.variations", "spec.rollout", "spec.serviceName"
	groups := func(list string) string { return "variations: [" + list + "]" }
	runSpecCases(t, "ABRelease", groupsRelease, map[string]specCase{
		"two groups are accepted":                     {},
		"the model Router by its name is refused":     {"rollout: {strategyName: a, model: Router, requestedBy: alice}", []string{service, to}, "give serviceName with them, and leave it out with TargetGroup"},
		"a model that does not exist is refused":      {"rollout: {strategyName: a, model: Both, requestedBy: alice}", []string{model + ".model"}, "Unsupported value"},
		"Hybrid without a workload is refused":        {"serviceName: web\nrollout: {strategyName: a, model: Hybrid, requestedBy: alice}", []string{to}, "with Hybrid each variation is a workload with a group"},
		"a Service beside groups is refused":          {"serviceName: web", []string{service}, "leave it out with TargetGroup"},
		"a workload beside a group is refused":        {groups("{name: stable, group: {kind: Deployment, name: worker}}, {name: canary, workload: {kind: Deployment, name: x}}"), []string{to}, "each variation is a group"},
		"a group of both is refused":                  {groups("{name: stable, group: {kind: Deployment, name: worker}}, {name: canary, group: {kind: Deployment, name: x}, workload: {kind: Deployment, name: other}}"), []string{to}, "with the model TargetGroup each variation is a group"},
		"a StatefulSet is refused":                    {groups("{name: stable, group: {kind: StatefulSet, name: worker}}, {name: canary, group: {kind: Deployment, name: x}}"), []string{to + "[0].group.kind"}, "Unsupported value"},
		"one Deployment for both is refused":          {groups("{name: stable, group: {kind: Deployment, name: worker}}, {name: canary, group: {kind: Deployment, name: worker}}"), []string{to}, "two variations have the same group"},
		"no requester is refused":                     {"rollout: {strategyName: a, model: TargetGroup}", []string{model + ".requestedBy"}, "set requestedBy to the user"},
		"a minimum of an autoscaler is refused":       {"rollout: {strategyName: a, model: TargetGroup, requestedBy: alice, fallback: HoldMinReplicas}", []string{model + ".fallback"}, "leave fallback out"},
		"a promotion into the baseline is refused":    {"rollout: {strategyName: a, model: TargetGroup, requestedBy: alice, promotion: UpdateBaseline}", []string{model + ".promotion"}, "use KeepVariation"},
		"a division of visitors is refused":           {"trafficSplit: {type: Sticky, sticky: {cookie: a}, percentages: {stable: 100, canary: 0}}", []string{"spec.trafficSplit"}, "use type Percentage"},
		"a header that overrides is refused":          {"trafficSplit: {type: Percentage, overrideHeader: x, percentages: {stable: 100, canary: 0}}", []string{"spec.trafficSplit"}, "without overrideHeader"},
		"percentages of a canary are refused as ever": {"trafficSplit: {type: Percentage, percentages: {stable: 90, canary: 10}}", []string{"spec.trafficSplit.percentages"}, "the stable variation has 100 percent"},
		"a group without a rollout is refused":        {"rollout: null", []string{service, to}, "give serviceName with them"},
	})
	runSpecCases(t, "ABRelease", smallestRelease, map[string]specCase{
		"the model Router is accepted":          {spec: "trafficSplit: {type: Percentage, percentages: {stable: 100, canary: 0}}\nrollout: {strategyName: a, model: Router}"},
		"a Service that is left out is refused": {"serviceName: null", []string{service}, "give serviceName with them, and leave it out with TargetGroup"},
		"TargetGroup without groups is refused": {"trafficSplit: {type: Percentage, percentages: {stable: 100, canary: 0}}\n" + groupRollout, []string{service, to}, "leave it out with TargetGroup"},
	})
}

func TestABRelease_GroupsAreImmutable(t *testing.T) {
	create(t, object(t, "ABRelease", "workers", groupsRelease))
	create(t, object(t, "ABRelease", "requests", smallestRelease))
	const to = "spec.variations"
	runPatchCases(t, "ABRelease", "workers", dryPatch, map[string]patchCase{
		"another strategy is accepted":    {patch: `{"spec":{"rollout":{"strategyName":"b"}}}`},
		"another stable one is accepted":  {patch: `{"spec":{"stable":"canary","trafficSplit":{"percentages":{"stable":0,"canary":100}}}}`},
		"another Deployment is refused":   {`{"spec":{"variations":[{"name":"stable","group":{"kind":"Deployment","name":"worker"}},{"name":"canary","group":{"kind":"Deployment","name":"other"}}]}}`, []string{to + "[1].group"}, "a group is immutable"},
		"another variation is refused":    {`{"spec":{"trafficSplit":{"percentages":{"stable":100,"canary":null,"next":0}},"variations":[{"name":"stable","group":{"kind":"Deployment","name":"worker"}},{"name":"next","group":{"kind":"Deployment","name":"other"}}]}}`, []string{to}, "the groups are immutable"},
		"a model that changes is refused": {`{"spec":{"serviceName":"web","rollout":{"model":"Router"},"variations":[{"name":"stable","workload":{"kind":"Deployment","name":"worker"}},{"name":"canary","workload":{"kind":"Deployment","name":"other"}}]}}`, []string{"spec.rollout"}, "the model is immutable"},
	})
	runPatchCases(t, "ABRelease", "requests", dryPatch, map[string]patchCase{
		"a release of requests does not become one of groups": {`{"spec":{"serviceName":null,"trafficSplit":{"percentages":{"stable":100,"canary":0}},"rollout":{"strategyName":"a","model":"TargetGroup","requestedBy":"alice"},"variations":[{"name":"stable","group":{"kind":"Deployment","name":"worker"}},{"name":"canary","group":{"kind":"Deployment","name":"other"}}]}}`, []string{"spec.rollout"}, "the model is immutable"},
	})
}
