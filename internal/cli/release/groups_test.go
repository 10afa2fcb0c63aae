// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// dividing is a release of groups, in the stage of rolling.
func dividing() *v1alpha1.ABRelease {
	r := rolling()
	r.Name, r.Spec.ServiceName, r.Spec.Rollout.Model = "workers", "", v1alpha1.RolloutModelTargetGroup
	r.Spec.Variations[0].Group = &v1alpha1.VariationGroup{Kind: v1alpha1.VariationGroupDeployment, Name: "worker"}
	r.Spec.Variations[1].Group = &v1alpha1.VariationGroup{Kind: v1alpha1.VariationGroupDeployment, Name: "worker-next"}
	r.Status.Acknowledged, r.Status.Effective, r.Status.Wanted, r.Status.Observed = nil, nil, nil, nil
	in := r.Status.Rollout
	in.Analysis, in.Gates = nil, nil
	in.Run.Division = &v1alpha1.RolloutDivision{Replicas: new(int32(12)), Active: new(int32(9)), Canary: new(int32(3))}
	in.Groups = []v1alpha1.RolloutGroup{
		{Variation: "blue", Wanted: new(int32(9)), Replicas: new(int32(9)), Ready: new(int32(9))},
		{Variation: "green", Wanted: new(int32(3)), Replicas: new(int32(3)), Ready: new(int32(2)), RestartedPods: new(int32(0))},
	}
	return r
}

func TestAReleaseOfGroupsShowsTheirReplicas(t *testing.T) {
	screen := progress.ScreenOf(dividing(), clitest.Now)
	want := []string{
		"workers · groups of shop · run 7, Running · shop:1 → shop:2 · for 20m · by strategy canary",
		"               deployment  wanted  replicas  ready  restarted",
		"blue               worker       9         9      9          –",
		"green (canary)  worker-next       3         3      2          0",
		"then     100 %, after an approval",
	}
	got := strings.Join(drawScreen(&screen), "\n")
	for _, line := range want {
		if fields := strings.Join(strings.Fields(line), " "); !strings.Contains(strings.Join(strings.Fields(got), " "), fields) {
			t.Errorf("there is no %q in\n%s", line, got)
		}
	}
	if strings.Contains(got, "acknowledged") || strings.Contains(got, "requests") {
		t.Errorf("proxies and requests are in\n%s", got)
	}
}

func TestWhyNamesTheGatesOfGroups(t *testing.T) {
	names := func(e progress.Explanation) (all []string) {
		for _, gate := range e.Gates {
			all = append(all, gate.Name+" "+string(gate.State))
		}
		return all
	}
	r := dividing()
	want := []string{
		"Spec OK", "Strategy OK", "Revision OK", "Start OK", "Groups Holds", "MinimumTime Holds", "Verdict OK", "Approval Holds", "AutoAdvance OK", "Pause OK",
	}
	if diff := cmp.Diff(want, names(progress.Explain(&progress.Question{Release: r, Now: clitest.Now}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Status.Rollout.Waiting = &v1alpha1.RolloutWait{Reason: "GroupScaled", Message: "another writer has scaled it"}
	for _, gate := range progress.Explain(&progress.Question{Release: r, Now: clitest.Now}).Gates {
		if gate.Name == "Groups" && (gate.State != progress.GateHolds || gate.Value != "another writer has scaled it" || !strings.Contains(gate.Next, "scale the Deployment back")) {
			t.Errorf("the gate is %+v", gate)
		}
	}
}

func TestLintOfGroupsNeedsNoService(t *testing.T) {
	r := dividing()
	found, unread := progress.LintRelease(r, &progress.ManifestFacts{
		Strategy: &v1alpha1.RolloutStrategySpec{}, Groups: map[v1alpha1.VariationName]progress.WorkloadFacts{"blue": {Exists: true}},
	})
	var fields []string
	for _, f := range found {
		fields = append(fields, f.Field)
	}
	want := []string{"spec.variations[1].group", "spec"}
	if diff := cmp.Diff(want, fields[:min(len(fields), 2)]); diff != "" || len(unread) > 0 {
		t.Errorf("unread %q, and found (-want +got):\n%s\n%+v", unread, diff, found)
	}
}
