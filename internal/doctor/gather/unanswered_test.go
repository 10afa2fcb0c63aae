// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

func TestTheNewestAssessmentTellsWhetherASourceAnswers(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	assessment := func(name string, ago time.Duration, alerts, metrics v1alpha1.ComponentState) *v1alpha1.EffectivenessAssessment {
		a := &v1alpha1.EffectivenessAssessment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		a.Status.AskedTime = &metav1.Time{Time: testNow.Add(-ago)}
		a.Status.Components = []v1alpha1.AssessedComponent{{Name: v1alpha1.ComponentAlerts, State: alerts, Message: "of " + name}, {Name: v1alpha1.ComponentMetrics, State: metrics}}
		return a
	}
	never := &v1alpha1.EffectivenessAssessment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "never-asked"}}
	r := &reader{snapshot: &doctor.Snapshot{}, client: fakeclient.NewBuilder(scheme).WithObjects(
		assessment("old", time.Hour, v1alpha1.ComponentAssessed, v1alpha1.ComponentNotAnswered),
		assessment("new", time.Minute, v1alpha1.ComponentNotAnswered, v1alpha1.ComponentAssessed),
		assessment("newest", time.Second, v1alpha1.ComponentNotConfigured, v1alpha1.ComponentNotConfigured), never,
	).Build()}
	want := doctor.Got([]doctor.Unanswered{{Component: v1alpha1.ComponentAlerts, Namespace: "shop", Assessment: "new", Message: "of new", Time: testNow.Add(-time.Minute)}})
	if diff := cmp.Diff(want, r.unanswered(t.Context())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
