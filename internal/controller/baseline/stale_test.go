// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/checks"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

// reconcilerOn is a Reconciler on an API server that holds these objects.
func reconcilerOn(t *testing.T, objects ...client.Object) *Reconciler {
	t.Helper()
	types := apiruntime.NewScheme()
	if err := scheme.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	c := fakeclient.NewBuilder(types).WithObjects(objects...).Build()
	r := &Reconciler{Client: c, Live: c, Agenda: checks.NewAgenda()}
	r.Prepare()
	return r
}

// A crash leaves a revision that no Baseline names; so does another assessor
// between its two writes, and then the Baseline is not as it was decided on.
func TestARevisionIsReplacedOnlyWhileTheBaselineIsAsItWasDecidedOn(t *testing.T) {
	tests := map[string]struct {
		moved        bool // the Baseline, since
		wantConflict bool
		wantBy       string
	}{
		"left by a crash":             {wantBy: "ci"},
		"authorized by another since": {moved: true, wantConflict: true, wantBy: "bob"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployments.apps.web", UID: "b"}}
			r := reconcilerOn(t, b)
			s := &subject{key: webKey, baseline: &v1alpha1.Baseline{}}
			if err := r.Live.Get(t.Context(), client.ObjectKeyFromObject(b), s.baseline); err != nil {
				t.Fatal(err)
			}
			theirs := specguard.AuthorizeRevision{Number: 2, Hash: "pl1:theirs", Body: []byte(`{"a":1}`), By: "bob", At: epoch}
			if err := r.storeRevision(t.Context(), s, theirs); err != nil {
				t.Fatal(err)
			}
			if tc.moved {
				next := s.baseline.DeepCopy()
				next.Spec.Authorized = &v1alpha1.AuthorizedState{Number: 2, Hash: "pl1:theirs", By: "bob"}
				if err := r.Client.Update(t.Context(), next); err != nil {
					t.Fatal(err)
				}
			}
			ours := specguard.AuthorizeRevision{Number: 2, Hash: "pl1:ours", Body: []byte(`{"a":2}`), By: "ci", At: epoch}
			if err := r.storeRevision(t.Context(), s, ours); apierrors.IsConflict(err) != tc.wantConflict || err != nil && !tc.wantConflict {
				t.Errorf("storing ours: %v, want a conflict: %t", err, tc.wantConflict)
			}
			var found v1alpha1.BaselineRevision
			key := client.ObjectKey{Namespace: "shop", Name: specguard.RevisionName(b.Name, 2)}
			if err := r.Live.Get(t.Context(), key, &found); err != nil || found.Spec.By != tc.wantBy {
				t.Errorf("the revision is %q's (%v), want %q's", found.Spec.By, err, tc.wantBy)
			}
		})
	}
}

func TestAnObjectIsNotJudgedByWhatIsOlderThanItsBaselineTells(t *testing.T) {
	living := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	observed := v1alpha1.ObservedState{UID: "u", ResourceVersion: "10", Hash: "pl1:x"}
	tests := map[string]struct {
		view kube.View
		last v1alpha1.ObservedState
		warm bool
		live []client.Object
		want bool
	}{
		"an older version waits":                       {view: kube.View{Current: object(t, "u", 9, 1, "ci")}, last: observed, want: true},
		"the very version does not":                    {view: kube.View{Current: object(t, "u", 10, 1, "ci")}, last: observed},
		"nor a newer one":                              {view: kube.View{Current: object(t, "u", 11, 1, "ci")}, last: observed},
		"nor another object":                           {view: kube.View{Current: object(t, "v", 9, 1, "ci")}, last: observed},
		"what this process judged last is its own":     {view: kube.View{Current: object(t, "u", 9, 1, "ci")}, last: observed, warm: true},
		"an object that only seems to be gone waits":   {last: observed, live: []client.Object{living}, want: true},
		"one that is gone does not":                    {last: observed},
		"one whose absence was told before is settled": {last: v1alpha1.ObservedState{UID: "u", Hash: specguard.HashAbsent}, live: []client.Object{living}},
		"one whose deletion was seen is gone": {
			view: kube.View{Pending: []kube.Transition{{Prev: object(t, "u", 11, 1, "ci"), Contiguous: true}}},
			last: observed, live: []client.Object{living},
		},
		"one that nobody ever observed has no past": {live: []client.Object{living}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := reconcilerOn(t, tc.live...)
			s := &subject{key: webKey, view: tc.view, cold: !tc.warm, baseline: &v1alpha1.Baseline{}}
			s.state.Observed = tc.last
			got, err := r.behind(t.Context(), s)
			if err != nil || got != tc.want {
				t.Errorf("behind is %t (%v), want %t", got, err, tc.want)
			}
		})
	}
}
