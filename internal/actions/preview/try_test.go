// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

func TestRefusalOf_TellsARefusalFromWhatIsNotKnown(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	cases := map[string]struct {
		err     error
		outcome Outcome
		words   string
	}{
		"a lost connection":           {errors.New("connection\n reset"), Unknown, "connection reset"},
		"a server that fails":         {apierrors.NewInternalError(errors.New("etcd")), Unknown, "Internal error occurred: etcd"},
		"a user without the right":    {apierrors.NewForbidden(deployments, "web", errors.New("no")), Forbidden, `deployments.apps "web" is forbidden: no`},
		"a denial by a guard":         {denied(), Refused, "denied by a guard"},
		"a version that has gone":     {apierrors.NewConflict(deployments, "web", errors.New("newer")), Moved, `Operation cannot be fulfilled on deployments.apps "web": newer`},
		"an object that has gone":     {apierrors.NewNotFound(deployments, "web"), Moved, `deployments.apps "web" not found`},
		"an object that is not valid": {apierrors.NewBadRequest("no such field"), Refused, "no such field"},
		"an error within a context":   {fmt.Errorf("trying: %w", apierrors.NewNotFound(deployments, "web")), Moved, `trying: deployments.apps "web" not found`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if outcome, words := refusalOf(tc.err); outcome != tc.outcome || words != tc.words {
				t.Errorf("got %s, %q, want %s, %q", outcome, words, tc.outcome, tc.words)
			}
		})
	}
}

// denied is the answer of an admission webhook, whose cause names the guard.
func denied() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: 403, Reason: metav1.StatusReasonForbidden, Message: "denied by a guard",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "Guard", Message: "SpecGuard shop/apps"}}},
	}}
}

func TestChangesBetween_ReportsWhatIsHashed(t *testing.T) {
	gvk := canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}
	body := func(replicas, status int) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":%d},"status":{"replicas":%d}}`, replicas, status)
	}
	cases := map[string]struct {
		before, after []byte
		want          []actions.Change
	}{
		"an object that is made again": {nil, body(1, 0), []actions.Change{{Operation: "Added", After: "(made again)"}}},
		"a changed spec":               {body(5, 5), body(1, 5), []actions.Change{{Path: "/spec/replicas", Operation: "Changed", Before: "5", After: "1"}}},
		"a status alone":               {body(1, 0), body(1, 1), []actions.Change{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := changesBetween(tc.before, tc.after, gvk)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
