// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	smallestWork = `{releaseName: web, releaseUID: u-1, run: 3, number: 7, verb: CreateClone, variation: canary, replicas: 2, expectedHash: 'pl1:sha256:5eed'}`

	// cloneRelease is the smallest release with a clone.
	cloneRelease = `{serviceName: web, stable: stable, variations: [{name: stable, workload: {kind: Deployment, name: web}}, {name: canary, clone: {image: 'shop:2', podLabels: {app: web-canary}}}], trafficSplit: {type: Percentage, percentages: {stable: 100, canary: 0}}, ` + cloneRollout + `}`
	groupRollout = `rollout: {strategyName: a, model: TargetGroup, requestedBy: alice}`
	cloneRollout = `rollout: {strategyName: a, promotion: UpdateBaseline, requestedBy: alice}`
)

func TestReleaseWork_Fields(t *testing.T) {
	cases := map[string]specCase{
		"the smallest work is accepted":                {},
		"a scale to 0 is accepted":                     {spec: "verb: Scale\nreplicas: 0"},
		"a creation without replicas is refused":       {"replicas: null", []string{"spec.replicas"}, "CreateClone, Scale and HoldMinReplicas say how many"},
		"replicas of the baseline are refused":         {"verb: UpdateBaseline", []string{"spec.replicas"}, "UpdateBaseline does not"},
		"replicas below zero are refused":              {"replicas: -1", []string{"spec.replicas"}, "greater than or equal to 0"},
		"a verb that deletes is refused":               {"verb: Delete", []string{"spec.verb"}, "Unsupported value"},
		"a minimum of an autoscaler is accepted":       {spec: "verb: HoldMinReplicas\nreplicas: 3"},
		"a minimum without a number is refused":        {"verb: HoldMinReplicas\nreplicas: null", []string{"spec.replicas"}, "HoldMinReplicas say how many"},
		"a release of another namespace is refused":    {"releaseName: other/web", []string{"spec.releaseName"}, "should match"},
		"a run before the first is refused":            {"run: 0", []string{"spec.run"}, "greater than or equal to 1"},
		"a work without the uid of its release is bad": {"releaseUID: ''", []string{"spec.releaseUID"}, "at least 1 chars"},
		"a work without the expected hash is refused":  {"expectedHash: ''", []string{"spec.expectedHash"}, "at least 1 chars"},
	}
	runSpecCases(t, "ReleaseWork", smallestWork, cases)
	create(t, object(t, "ReleaseWork", "asked", smallestWork))
	runPatchCases(t, "ReleaseWork", "asked", dryPatch, map[string]patchCase{
		"other replicas afterwards are refused": {`{"spec":{"replicas":9}}`, []string{"spec"}, "a ReleaseWork is immutable"},
		"the same replicas are accepted":        {patch: `{"spec":{"replicas":2}}`},
	})
	cases["an immutable spec, of the patches above"] = specCase{"", []string{"spec"}, "a ReleaseWork is immutable"}
	cases["an end that stays, of TestReleaseWork_End"] = specCase{"", []string{"status.phase"}, "a work that has ended stays so"}
	demandEveryRuleTried(t, "ReleaseWork", "spec", cases)
	demandEveryRuleTried(t, "ReleaseWork", "status", cases)
}

func TestReleaseWork_End(t *testing.T) {
	create(t, object(t, "ReleaseWork", "ended", smallestWork))
	ended := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Refused","reason":"Halted"}}`))
	if err := kube.Status().Patch(t.Context(), object(t, "ReleaseWork", "ended"), ended); err != nil {
		t.Fatal(err)
	}
	runPatchCases(t, "ReleaseWork", "ended", statusPatch, map[string]patchCase{
		"an end that is taken back is refused": {`{"status":{"phase":"Running"}}`, []string{"status.phase"}, "a work that has ended stays so"},
		"another end is refused":               {`{"status":{"phase":"Succeeded"}}`, []string{"status.phase"}, "a work that has ended stays so"},
		"a reason that is none is refused":     {`{"status":{"reason":"Mood"}}`, []string{"status.reason"}, "Unsupported value"},
	})
}

func TestABRelease_Clones(t *testing.T) {
	const at, promotion = "spec.variations", "spec.rollout.promotion"
	clone := func(fields string) string {
		return variations("{name: canary, clone: {" + fields + "}}")
	}
	const labels = ", podLabels: {app: web-canary}"
	const stableClone = "variations: [{name: stable, clone: {image: a, podLabels: {app: a}}}, {name: canary, clone: {image: b, podLabels: {app: b}}}]"
	var many []string
	for i := range 17 {
		many = append(many, fmt.Sprintf("k%d: v", i))
	}
	cases := map[string]specCase{
		"the smallest clone is accepted":             {},
		"a clone that Git merges is accepted":        {spec: strings.Replace(cloneRollout, "UpdateBaseline", "AwaitBaseline", 1)},
		"variables of the only container":            {spec: clone("env: [{name: MODE, value: ''}]" + labels)},
		"containers by name are accepted":            {spec: clone("containers: [{name: app, image: 'a:2'}, {name: side, env: [{name: A, value: b}]}]" + labels)},
		"groups of the requester are accepted":       {spec: strings.Replace(cloneRollout, "}", ", requestedByGroups: [team]}", 1)},
		"a clone and a workload are refused":         {variations("{name: canary, workload: {kind: Deployment, name: x}, clone: {image: a" + labels + "}}"), []string{at + "[1]"}, "either a workload or a selector, or a clone"},
		"a clone and a selector are refused":         {variations("{name: canary, selector: {matchLabels: {a: b}}, clone: {image: a" + labels + "}}"), []string{at + "[1]"}, "either a workload or a selector, or a clone"},
		"a clone that differs in nothing is refused": {clone("minReplicas: 2" + labels), []string{at + "[1].clone"}, "give one of them"},
		"an image and containers are refused":        {clone("image: a, containers: [{name: app, image: b}]" + labels), []string{at + "[1].clone"}, "give one of them"},
		"a container that differs in nothing":        {clone("containers: [{name: app}]" + labels), []string{at + "[1].clone.containers[0]"}, "image, env, or both"},
		"an image with a blank is refused":           {clone("image: 'a b'" + labels), []string{at + "[1].clone.image"}, "should match"},
		"a variable without a value is refused":      {clone("env: [{name: A}]" + labels), []string{at + "[1].clone.env[0].value"}, "Required value"},
		"a variable with an equals sign is refused":  {clone("env: [{name: A=B, value: c}]" + labels), []string{at + "[1].clone.env[0].name"}, "should match"},
		"no labels are refused":                      {clone("image: a"), []string{at + "[1].clone.podLabels"}, "Required value"},
		"labels of ours are refused":                 {clone("image: a, podLabels: {plumbline.dev/clone: b}"), []string{at + "[1].clone.podLabels"}, "set by the executor alone"},
		"a label without a key is refused":           {clone("image: a, podLabels: {'': b}"), []string{at + "[1].clone.podLabels"}, "1 to 317 characters"},
		"seventeen labels are refused":               {clone("image: a, podLabels: {" + strings.Join(many, ", ") + "}"), []string{at + "[1].clone.podLabels"}, "must have at most 16"},
		"no replicas at all are refused":             {clone("image: a, minReplicas: 0" + labels), []string{at + "[1].clone.minReplicas"}, "greater than or equal to 1"},
		"a clone without a rollout is refused":       {"rollout: null", []string{at}, "only a rollout makes a clone"},
		"a clone as the stable variation is refused": {stableClone, []string{at}, "the stable variation is no clone"},
		"a clone of a StatefulSet is refused":        {"variations: [{name: stable, workload: {kind: StatefulSet, name: web}}, {name: canary, clone: {image: a" + labels + "}}]", []string{at}, "must be one"},
		"a clone that is kept is refused":            {"rollout: {strategyName: a, promotion: KeepVariation, requestedBy: alice}", []string{promotion}, "a clone ends with its run"},
		"a clone without a policy is refused":        {"rollout: {strategyName: a, requestedBy: alice}", []string{promotion}, "a clone ends with its run"},
		"a workload that updates another is refused": {variations("{name: canary, workload: {kind: Deployment, name: x}}"), []string{promotion}, "are for a clone"},
		"a minimum without a requester is refused":   {variations("{name: canary, workload: {kind: Deployment, name: x}}") + "\nrollout: {strategyName: a, fallback: HoldMinReplicas}", []string{"spec.rollout.requestedBy"}, "with the permissions of a user"},
		"a clone without a requester is refused":     {"rollout: {strategyName: a, promotion: UpdateBaseline}", []string{"spec.rollout.requestedBy"}, "set requestedBy to the user"},
		"a selector in a rollout is refused as ever": {variations("{name: canary, selector: {matchLabels: {a: b}}}") + "\nrollout: {strategyName: a}", []string{at}, "by its workload: name one"},
		"a policy that does not exist is refused":    {strings.Replace(cloneRollout, "UpdateBaseline", "Hope", 1), []string{promotion}, "Unsupported value"},
	}
	runSpecCases(t, "ABRelease", cloneRelease, cases)
	demandEveryRuleTried(t, "ABRelease", "spec.variations[].clone", cases)
}
