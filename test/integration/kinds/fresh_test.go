// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"testing"
)

const (
	freshRollout = `rollout: {strategyName: a, requestedBy: alice, analysis: {control: Fresh, controlPodLabels: {app: web-control}}}`
	freshRelease = `{serviceName: web, stable: stable, variations: [{name: stable, workload: {kind: Deployment, name: web}}, {name: canary, workload: {kind: Deployment, name: web-next}}], trafficSplit: {type: Percentage, percentages: {stable: 100, canary: 0}}, ` + freshRollout + `}`
)

func TestABRelease_FreshControl(t *testing.T) {
	const analysis, labels = "spec.rollout.analysis", "spec.rollout.analysis.controlPodLabels"
	rollout := func(analysis string) string {
		return "rollout: {strategyName: a, requestedBy: alice, analysis: {" + analysis + "}}"
	}
	cases := map[string]specCase{
		"a control beside two workloads is accepted":    {},
		"a control beside a clone is accepted":          {spec: "variations: [{name: stable, workload: {kind: Deployment, name: web}}, {name: canary, clone: {image: b, podLabels: {app: b}}}]\nrollout: {strategyName: a, promotion: UpdateBaseline, requestedBy: alice, analysis: {control: Fresh, controlPodLabels: {app: web-control}}}"},
		"the control Stable is accepted":                {spec: rollout("control: Stable")},
		"an analysis without a control is accepted":     {spec: rollout("cohortCheck: 0s")},
		"a warmup is accepted":                          {spec: rollout("warmup: 1m30s")},
		"no warmup is accepted":                         {spec: rollout("warmup: 0s")},
		"a warmup that is too long is refused":          {rollout("warmup: 11m"), []string{analysis + ".warmup"}, "from 0s to 10m"},
		"a warmup that is no duration is refused":       {rollout("warmup: soon"), []string{analysis + ".warmup"}, "from 0s to 10m"},
		"a control that does not exist is refused":      {rollout("control: Old"), []string{analysis + ".control"}, "Unsupported value"},
		"a control without labels is refused":           {rollout("control: Fresh"), []string{labels}, "need labels that take them out of the Service"},
		"labels without a control are refused":          {rollout("controlPodLabels: {app: web-control}"), []string{labels}, "leave them out with Stable"},
		"labels of the control Stable are refused":      {rollout("control: Stable, controlPodLabels: {app: web-control}"), []string{labels}, "leave them out with Stable"},
		"no label is refused":                           {rollout("control: Fresh, controlPodLabels: {}"), []string{labels}, "should have at least 1"},
		"a label without a key is refused":              {rollout("control: Fresh, controlPodLabels: {'': b}"), []string{labels}, "1 to 317 characters"},
		"labels of ours are refused":                    {rollout("control: Fresh, controlPodLabels: {plumbline.dev/clone: b}"), []string{labels}, "set by the executor alone"},
		"no requester is refused":                       {"rollout: {strategyName: a, analysis: {control: Fresh, controlPodLabels: {app: web-control}}}", []string{"spec.rollout.requestedBy"}, "makes a fresh control with the permissions of a user"},
		"a StatefulSet is refused":                      {"variations: [{name: stable, workload: {kind: StatefulSet, name: web}}, {name: canary, workload: {kind: Deployment, name: web-next}}]", []string{analysis + ".control"}, "is the clone of a Deployment"},
		"a StatefulSet that may become active, neither": {"variations: [{name: stable, workload: {kind: Deployment, name: web}}, {name: canary, workload: {kind: StatefulSet, name: web-next}}]", []string{analysis + ".control"}, "is the clone of a Deployment"},
		"a variation of that name is refused":           {"variations: [{name: stable, workload: {kind: Deployment, name: web}}, {name: fresh-control, workload: {kind: Deployment, name: web-next}}]\ntrafficSplit: {type: Percentage, percentages: {stable: 100, fresh-control: 0}}", []string{analysis + ".control"}, "give the variations other names"},
	}
	runSpecCases(t, "ABRelease", freshRelease, cases)
	runSpecCases(t, "ABRelease", hybridRelease, map[string]specCase{
		"requests beside groups are refused": {"rollout: {strategyName: a, model: Hybrid, requestedBy: alice, analysis: {control: Fresh, controlPodLabels: {app: web-control}}}", []string{analysis + ".control"}, "use the model Router, or the control Stable"},
	})
}
