// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// revisionBody asks to roll an object back to a revision.
func revisionBody(t *testing.T, policy string, number int64) string {
	t.Helper()
	raw, err := json.Marshal(wire.ExecuteRequest{PolicyID: policy, Targets: targetsIn("shop", 2), RevisionNumber: &number})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// rollsBack is a shop with a policy that rolls back, and with revision 3 of each of two drifted objects.
func rollsBack(t *testing.T) []client.Object {
	t.Helper()
	objects := append(shop(t), driftedIn("shop", 2)...)
	for _, o := range objects {
		if p, is := o.(*v1alpha1.RemediationPolicy); is && p.Name == examplePolicy {
			back := p.DeepCopy()
			back.Name, back.UID, back.Spec.Action = "back", "c0000000-0000-4000-8000-00000000000b", v1alpha1.ActionRollback
			objects = append(objects, back)
			break
		}
	}
	for i := range 2 {
		name := fmt.Sprintf("b%d", i)
		objects = append(objects, &v1alpha1.BaselineRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: specguard.RevisionName(name, 3)},
			Spec:       v1alpha1.BaselineRevisionSpec{BaselineName: name, Number: 3},
		})
	}
	return objects
}

func TestObjectsAreRolledBackToARevision(t *testing.T) {
	c := newCluster(t, interceptor.Funcs{}, rollsBack(t)...)
	a := newAnswers(t, c)
	want[wire.Execution](a, a.send(http.MethodPost, executePath, revisionBody(t, "back", 3)), http.StatusAccepted)
	list := &v1alpha1.RemediationRequestList{}
	if err := c.List(t.Context(), list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d requests are stored: %v", len(list.Items), err)
	}
	var revisions []string
	for _, target := range list.Items[0].Spec.Targets {
		revisions = append(revisions, target.Revision)
	}
	if diff := cmp.Diff([]string{"b0-3", "b1-3"}, revisions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARevisionIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		policy string
		number int64
		words  string
	}{
		"a policy that does not roll back": {examplePolicy, 3, "does not roll back: its action is reconcile"},
		"a revision that is not kept":      {"back", 2, "revision 2 of shop.b0 does not exist or is no longer kept"},
		"no number of a revision":          {"back", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, interceptor.Funcs{}, rollsBack(t)...)
			a := newAnswers(t, c)
			p := a.wantProblem(a.send(http.MethodPost, executePath, revisionBody(t, tc.policy, tc.number)), wire.Invalid, "body.revisionNumber")
			if len(p.Errors) == 0 || !strings.Contains(p.Errors[0].Message, tc.words) {
				t.Errorf("the faults are %+v", p.Errors)
			}
			if stored := requestsIn(t, c); len(stored) > 0 {
				t.Errorf("stored is %v", stored)
			}
		})
	}
}

// The assessor tells a caller who may not read revisions.
func TestARevisionIsChosenWithoutTheRightToReadIt(t *testing.T) {
	c := newCluster(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, is := o.(*v1alpha1.BaselineRevision); is {
			return mayNot("get", "baselinerevisions")
		}
		return c.Get(ctx, key, o, opts...)
	}}, rollsBack(t)...)
	a := newAnswers(t, c)
	want[wire.Execution](a, a.send(http.MethodPost, executePath, revisionBody(t, "back", 9)), http.StatusAccepted)
}
