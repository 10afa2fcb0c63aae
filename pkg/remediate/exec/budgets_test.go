// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// imagePath is the path of the drift of web.
const imagePath = "/spec/template/spec/containers/[name=app]/image"

func TestARepairThatRemovesReadyPodsAsksThePodDisruptionBudgets(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
		Status:     policyv1.PodDisruptionBudgetStatus{ExpectedPods: 1},
	}
	elsewhere := budget.DeepCopy()
	elsewhere.Namespace = "other"
	for name, test := range map[string]struct {
		budget *policyv1.PodDisruptionBudget
		paths  []string
		lost   bool
		ready  bool
		wrote  bool
		why    string
	}{
		"no budget":                          {paths: []string{imagePath}, ready: true, wrote: true},
		"a budget of another namespace":      {budget: elsewhere, paths: []string{imagePath}, ready: true, wrote: true},
		"a budget that allows none":          {budget: budget, paths: []string{imagePath}, ready: true, why: "PodDisruptionBudget all allows no disruption now"},
		"a target that is not ready":         {budget: budget, paths: []string{imagePath}, wrote: true},
		"a repair of the replicas alone":     {budget: budget, paths: []string{"/spec/replicas"}, ready: true, wrote: true},
		"budgets that cannot be read":        {paths: []string{imagePath}, ready: true, lost: true, why: "what may hold it back could not be read"},
		"budgets that need not be read then": {paths: []string{"/spec/replicas"}, ready: true, lost: true, wrote: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.targets.ill = !test.ready
			change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) { p.Spec.Plan.Targets[0].Paths = test.paths })
			if test.budget != nil {
				if err := w.Client.Create(t.Context(), test.budget.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}
			if test.lost {
				w.failing("list *v1.PodDisruptionBudgetList", errNetwork)
			}
			out := w.carry()
			why := out.Why + w.now().Status.DeferralReason
			if wrote := len(w.targets.stored) > 0; wrote != test.wrote || !strings.Contains(why, test.why) {
				t.Errorf("wrote %t, want %t; it waits for %q, want %q", wrote, test.wrote, why, test.why)
			}
		})
	}
}
