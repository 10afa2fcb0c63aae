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

// pairing is a release of requests and groups, in the stage of rolling.
func pairing() *v1alpha1.ABRelease {
	r := rolling()
	r.Spec.Rollout.Model = v1alpha1.RolloutModelHybrid
	r.Spec.Variations[0].Group = &v1alpha1.VariationGroup{Kind: v1alpha1.VariationGroupDeployment, Name: "worker"}
	r.Spec.Variations[1].Group = &v1alpha1.VariationGroup{Kind: v1alpha1.VariationGroupDeployment, Name: "worker-next"}
	groups := dividing().Status.Rollout
	r.Status.Rollout.Groups, r.Status.Rollout.Run.Division = groups.Groups, groups.Run.Division
	r.Status.Rollout.Run.Division.Model = v1alpha1.RolloutModelHybrid
	return r
}

func TestAReleaseOfBothShowsRequestsAndReplicas(t *testing.T) {
	screen := progress.ScreenOf(pairing(), clitest.Now)
	got := strings.Join(strings.Fields(strings.Join(drawScreen(&screen), "\n")), " ")
	for _, want := range []string{
		"Service shop/web and groups · run 7, Running", "wanted acknowledged observed ready in-flight errors", "deployment wanted replicas ready restarted",
		"green (canary) worker-next 3 3 2 0", "proxies", "judge",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, strings.Join(drawScreen(&screen), "\n"))
		}
	}
}

func TestWhyNamesTheGatesOfBoth(t *testing.T) {
	r := pairing()
	var names []string
	values := map[string]progress.Gate{}
	for _, gate := range progress.Explain(&progress.Question{Release: r, Now: clitest.Now}).Gates {
		names, values[gate.Name] = append(names, gate.Name), gate
	}
	want := []string{"Spec", "Strategy", "Revision", "Start", "Groups", "Pods", "Proxies", "ObservedShare", "Counts", "MinimumTime", "Verdict", "Restarts"}
	if diff := cmp.Diff(want, names[:min(len(names), len(want))]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if g := values["Groups"]; g.State != progress.GateHolds || g.Value != "green: 2 of 3 ready" {
		t.Errorf("the groups are %+v", g)
	}
	if g := values["Restarts"]; g.State != progress.GateOK || !strings.Contains(g.Value, "0 pods of the canary have restarted") {
		t.Errorf("the restarts are %+v", g)
	}
}

func TestLintOfBothLooksAtServiceWorkloadsAndGroups(t *testing.T) {
	r := pairing()
	r.Spec.Variations[0].Workload = &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "web"}
	r.Spec.Variations[1].Workload = &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "web-next"}
	there := progress.WorkloadFacts{Exists: true, Ready: 4, PodLabels: map[string]string{"app": "web"}}
	found, unread := progress.LintRelease(r, &progress.ManifestFacts{
		ServiceExists: true, ServiceSelector: map[string]string{"app": "web"}, Strategy: &v1alpha1.RolloutStrategySpec{}, Executor: progress.Binding{Exists: true},
		Workloads: map[v1alpha1.VariationName]progress.WorkloadFacts{"blue": there},
		Groups:    map[v1alpha1.VariationName]progress.WorkloadFacts{"blue": there, "green": {Unread: "forbidden"}},
	})
	var fields []string
	for _, f := range found {
		fields = append(fields, f.Field)
	}
	want := []string{"spec.variations[0].group", "spec.variations[1].workload", "spec.rollout"}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("found (-want +got):\n%s\n%+v", diff, found)
	}
	if diff := cmp.Diff([]string{"Deployment worker-next: forbidden"}, unread); diff != "" {
		t.Errorf("unread (-want +got):\n%s", diff)
	}
}
