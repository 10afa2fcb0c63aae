// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestExplain_TellsWithWhatTheCanaryIsCompared(t *testing.T) {
	observed := func(r *v1alpha1.ABRelease) {
		r.Status.Observed = append(r.Status.Observed, v1alpha1.ObservedVariation{Variation: v1alpha1.FreshControl, ReadyEndpoints: 2, Targets: 3})
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.ABRelease)
		want   []string
	}{
		"a run without a fresh control": {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Run.FreshControl = nil }, nil},
		"a control that takes requests": {observed, []string{"OK: fresh-control: 2 of 3 ready, and the percentage needs 2"}},
		"a control that is not made":    {func(*v1alpha1.ABRelease) {}, []string{"Unknown: the status has no endpoints of fresh-control"}},
		"a control whose pods come": {func(r *v1alpha1.ABRelease) {
			observed(r)
			r.Status.Rollout.Waiting = &v1alpha1.RolloutWait{Reason: "Control", Message: "fresh-control: 0 of 2 are ready"}
		}, []string{"Holds: fresh-control: 0 of 2 are ready"}},
		"a control that was given up": {func(r *v1alpha1.ABRelease) {
			observed(r)
			c := r.Status.Rollout.Run.FreshControl
			c.CompletionTime, c.Message = new(metav1.Now()), "it has died"
		}, []string{"OK: the canary is compared with a itself: it has died"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := underWay()
			r.Status.Rollout.Run.From.Variation = "a"
			r.Status.Rollout.Run.FreshControl = &v1alpha1.RolloutFreshControl{Replicas: new(int32(3)), RequiredReady: 2}
			c.change(r)
			var got []string
			for _, gate := range Explain(&Question{Release: r}).Gates {
				if gate.Name == "Control" {
					got = append(got, string(gate.State)+": "+gate.Value)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the gates (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScreenOf_ShowsTheFreshControlWhileItIsInTheSplit(t *testing.T) {
	r := underWay()
	names := func() (names []v1alpha1.VariationName) {
		for _, v := range variationsOf(r) {
			names = append(names, v.Name)
		}
		return names
	}
	if slices.Contains(names(), v1alpha1.FreshControl) {
		t.Errorf("without a control there are %v", names())
	}
	r.Status.Wanted = append(r.Status.Wanted, v1alpha1.WantedWeight{Variation: v1alpha1.FreshControl, Weight: new(int32(1_000))})
	all := variationsOf(r)
	if last := all[len(all)-1]; last.Name != v1alpha1.FreshControl || last.IsCanary || *last.Wanted != 10 {
		t.Errorf("the last row is %+v", last)
	}
}
