// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The number of ended plans named the next plan. When one of them was deleted, the name was that of a plan
// that was still stored, and the drift was left alone without a word.
func TestADriftIsPutBackOnceAnEndedPlanForItIsDeleted(t *testing.T) {
	b := newBench(t)
	b.r.Client = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			o.SetUID(types.UID(o.GetName()))
			return c.Create(ctx, o, options...)
		},
	})
	b.look()
	first := b.plans()[0]
	b.fail(&first)
	b.look()
	for _, p := range b.plans() {
		if p.Name != first.Name {
			b.fail(&p)
		}
	}
	if err := b.client.Delete(t.Context(), &first); err != nil {
		t.Fatal(err)
	}
	b.look()
	if got := b.plans(); len(got) != 2 {
		t.Errorf("there are %d plans after the one that ended, and the policy waits for %q", len(got)-1, b.status().WaitingFor)
	}
}

// fail has a plan end without success, a while ago.
func (b *bench) fail(p *v1alpha1.RemediationPlan) {
	b.Helper()
	p.Status = v1alpha1.RemediationPlanStatus{
		Phase: v1alpha1.PlanFailed, CompletionTime: &metav1.Time{Time: b.clock.Now()}, Steps: []v1alpha1.PlanStep{{State: v1alpha1.StepFailed}},
	}
	if err := b.client.Status().Update(b.Context(), p); err != nil {
		b.Fatal(err)
	}
	b.clock.SetTime(b.clock.Now().Add(time.Minute))
}
