// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// imagePath is the path of the drift of web.
const imagePath = "/spec/template/spec/containers/[name=app]/image"

func TestARepairThatRemovesReadyPodsAsksThePodDisruptionBudgets(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all", Generation: 1, CreationTimestamp: metav1.NewTime(epoch.Add(-time.Hour))},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
		Status:     policyv1.PodDisruptionBudgetStatus{ExpectedPods: 1},
	}
	elsewhere := budget.DeepCopy()
	elsewhere.Namespace = "other"
	later := budget.DeepCopy()
	later.CreationTimestamp = metav1.NewTime(epoch.Add(time.Second))
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
		"a budget that came after the drift": {budget: later, paths: []string{imagePath}, ready: true, wrote: true},
		"a target that is not ready":         {budget: budget, paths: []string{imagePath}, wrote: true},
		"a repair of the replicas alone":     {budget: budget, paths: []string{"/spec/replicas"}, ready: true, wrote: true},
		"budgets that cannot be read":        {paths: []string{imagePath}, ready: true, lost: true, why: "the causes of a wait could not be read"},
		"budgets that need not be read then": {paths: []string{"/spec/replicas"}, ready: true, lost: true, wrote: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.targets.ill = !test.ready
			change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) {
				p.Spec.Plan.Targets[0].Paths, p.Spec.Plan.Targets[0].FirstSeenTime = test.paths, metav1.NewTime(epoch)
			})
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

// Each look read all budgets of the namespace, of which a tenant may write any number.
func TestALookReadsABoundedNumberOfPodDisruptionBudgets(t *testing.T) {
	spare := policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, ExpectedPods: 1}}
	last := policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "last", Generation: 1},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
		Status:     policyv1.PodDisruptionBudgetStatus{ExpectedPods: 1},
	}
	for name, test := range map[string]struct {
		pages int
		last  policyv1.PodDisruptionBudget
		reads []string
		wrote bool
		why   string
	}{
		"one page":                {1, spare, []string{"500 from "}, true, ""},
		"the last of two pages":   {2, last, []string{"500 from ", "500 from 1"}, false, "PodDisruptionBudget last allows no disruption now"},
		"as many as a look reads": {4, spare, []string{"500 from ", "500 from 1", "500 from 2", "500 from 3"}, true, ""},
		"one more than that": {5, spare, []string{"500 from ", "500 from 1", "500 from 2", "500 from 3"}, false,
			"namespace shop has more than 2000 PodDisruptionBudgets, so not all are read, and the repair of web removes ready pods"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) {
				p.Spec.Plan.Targets[0].Paths, p.Spec.Plan.Targets[0].FirstSeenTime = []string{imagePath}, metav1.NewTime(epoch)
			})
			var reads []string
			w.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
					page, ok := l.(*policyv1.PodDisruptionBudgetList)
					if !ok {
						return c.List(ctx, l, opts...)
					}
					of := (&client.ListOptions{}).ApplyOptions(opts)
					reads = append(reads, fmt.Sprintf("%d from %s", of.Limit, of.Continue))
					at, _ := strconv.Atoi(of.Continue) // the first page has none, and is page 0
					page.Items = []policyv1.PodDisruptionBudget{spare}
					if at+1 == test.pages {
						page.Items = []policyv1.PodDisruptionBudget{test.last}
						return nil
					}
					page.Continue = strconv.Itoa(at + 1)
					return nil
				},
			})
			out := w.carry()
			why := out.Why + w.now().Status.DeferralReason
			if wrote := len(w.targets.stored) > 0; wrote != test.wrote || !strings.Contains(why, test.why) {
				t.Errorf("wrote %t, want %t; it waits for %q, want %q", wrote, test.wrote, why, test.why)
			}
			reads = nil
			w.open().look(t.Context())
			if diff := cmp.Diff(test.reads, reads); diff != "" {
				t.Errorf("pages of one look (-want +got):\n%s", diff)
			}
		})
	}
}
