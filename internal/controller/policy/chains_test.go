// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/planning/planningtest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// undoneThrice has three plans put the drift of web back, each of which was undone.
func undoneThrice(c *planningtest.Cluster) {
	for i := range 3 {
		p := c.Ended(fmt.Sprint("auto-", i), v1alpha1.PlanSucceeded, v1alpha1.StepVerified, "")
		at := metav1.NewTime(epoch.Add(-time.Duration(3-i) * 10 * time.Minute))
		p.Spec.Plan.Targets[0].FirstSeenTime = metav1.NewTime(at.Add(-time.Second))
		p.Spec.Plan.Targets[0].Action, p.Status.CompletionTime = v1alpha1.ActionReconcile, &at
		p.Status.Steps[0].Result = &v1alpha1.StepResult{Hash: c.Baselines["web"].Spec.Authorized.Hash, RecordTime: at}
		p.Status.Steps[0].Effect = &v1alpha1.StepEffect{Verdict: v1alpha1.VerdictInvalidated, AssessmentName: p.Name + "-0"}
	}
}

// openChains expects the metric of a look.
func (b *bench) openChains(regressions int) {
	b.Helper()
	want := fmt.Sprintf(`
		# HELP plumbline_effectiveness_chains_open Drifted objects that are left to people because repairs of them did not help, by the rule of the chain.
		# TYPE plumbline_effectiveness_chains_open gauge
		plumbline_effectiveness_chains_open{rule="forward_chain"} 0
		plumbline_effectiveness_chains_open{rule="history_unknown"} 0
		plumbline_effectiveness_chains_open{rule="regressions"} %d
		plumbline_effectiveness_chains_open{rule="too_many_repairs"} 0
	`, regressions)
	if err := testutil.GatherAndCompare(b.registry, strings.NewReader(want), "plumbline_effectiveness_chains_open"); err != nil {
		b.Error(err)
	}
}

func TestAChainIsOpenUntilItIsForgiven(t *testing.T) {
	b := newBench(t, undoneThrice)
	b.look()
	b.openChains(1)
	if len(b.told) != 1 || b.told[0].Type != notify.PlanEscalated || !strings.Contains(b.told[0].Reason, "each of the last 3 repairs") {
		t.Errorf("people were told %+v", b.told)
	}
	another := b.policyNow()
	another.ObjectMeta = metav1.ObjectMeta{Name: "other", UID: "other-uid", Generation: 2}
	if err := b.client.Create(t.Context(), another); err != nil {
		t.Fatal(err)
	}
	b.lookAt("other")
	b.openChains(1) // the same chain
	for _, name := range []string{"auto", "other"} {
		policy := &v1alpha1.RemediationPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationChainsForgiven, epoch.Format(time.RFC3339))
		if err := b.client.Patch(t.Context(), policy, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Fatal(err)
		}
		b.lookAt(name)
	}
	b.openChains(0)
}

func TestAPolicyThatDoesNotActHasNoOpenChain(t *testing.T) {
	b := newBench(t, undoneThrice, func(c *planningtest.Cluster) { c.Policy.Spec.Mode = v1alpha1.PolicyModeObserveOnly })
	b.look()
	b.openChains(0)
}

func TestTheChainsOfAPolicyGoWithIt(t *testing.T) {
	b := newBench(t, undoneThrice)
	b.look()
	b.openChains(1)
	if err := b.client.Delete(t.Context(), b.policyNow()); err != nil {
		t.Fatal(err)
	}
	b.look()
	if n, err := testutil.GatherAndCount(b.registry, "plumbline_effectiveness_chains_open"); n != 0 || err != nil {
		t.Errorf("%d figures are left (%v)", n, err)
	}
}

func (b *bench) policyNow() *v1alpha1.RemediationPolicy {
	b.Helper()
	p := &v1alpha1.RemediationPolicy{}
	if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(b.Policy), p); err != nil {
		b.Fatal(err)
	}
	return p
}

func (b *bench) lookAt(policy string) {
	b.Helper()
	if _, err := b.r.Reconcile(b.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: policy}}); err != nil {
		b.Fatal(err)
	}
}
