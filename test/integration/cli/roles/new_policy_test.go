// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	chromium "github.com/plumbline-dev/plumbline/test/harness/browser"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// An author of policies creates one from the example, and halts it, by the keyboard alone and without a script.
func TestAPersonCreatesAPolicyFromTheExampleAndHaltsIt(t *testing.T) {
	rotation.Share(t, 2)
	environment := &v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "production"}, Spec: v1alpha1.EnvironmentSpec{
		Criticality: v1alpha1.CriticalityProduction, NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"environment": "none"}},
	}}
	if err := admin.Create(t.Context(), environment); !apierrors.IsAlreadyExists(err) {
		must(t, err)
		t.Cleanup(func() { must(t, admin.Delete(context.WithoutCancel(t.Context()), environment)) })
	}
	b := openConsole(t, "ann", author)
	awaitMay(t, b, "/policies")
	s := chromium.Start(t)
	s.WithoutScript()
	s.Open(b.WithKey(t, "/policies"))
	s.TabTo("#create button")
	s.Press(chromium.Enter)
	s.Await("<h1>New policy</h1>", `name="minimumDriftAge" value="00:15:00"`)
	s.Focus("#create [name=environmentName]")
	s.Type("production") // a list chooses the entry that is typed
	s.Focus("#create input[name=name]")
	s.Type("by-example")
	s.Press(chromium.Enter)
	s.Await("<h1>Policy by-example</h1>", "ObserveOnly")
	p := &v1alpha1.RemediationPolicy{}
	key := client.ObjectKey{Name: "by-example"}
	must(t, admin.Get(t.Context(), key, p))
	if got := p.Spec; got.EnvironmentName != "production" || got.RequestedBy != "ann" || len(got.Schedule.AllowedDays) != 5 || got.Safety.MaxConcurrent != 2 {
		t.Errorf("stored %+v", got)
	}
	s.TabTo("#halt input[name=reason]")
	s.Type("INC-9")
	s.Press(chromium.Enter)
	s.Await("You asked to halt the policy.", "Not now: the policy is halted already.")
	must(t, admin.Get(t.Context(), key, p))
	if p.Spec.Mode != v1alpha1.PolicyModeHalted || p.Annotations[v1alpha1.AnnotationModeReason] != "INC-9" {
		t.Errorf("stored %s for %q", p.Spec.Mode, p.Annotations[v1alpha1.AnnotationModeReason])
	}
	complainsAboutNothing(t, s)
}
