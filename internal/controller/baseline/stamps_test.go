// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/internal/stamp"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// policyOf answers "now" to who asks, and remembers "last".
type policyOf struct {
	failure error
	version stamp.Version
}

func (*policyOf) Last() stamp.Incarnation { return stamp.Incarnation{ID: "last"} }

func (p *policyOf) Now(context.Context) (stamp.Incarnation, error) {
	return stamp.Incarnation{ID: "now"}, p.failure
}

func (p *policyOf) Stamps(now stamp.Incarnation, _ schema.GroupVersionKind, v stamp.Version) specguard.Stamps {
	p.version = v
	return specguard.Stamps{Policy: now.ID}
}

func (*policyOf) Settled(_ schema.GroupVersionKind, progress string) string { return "at " + progress }

func TestThePolicyIsAskedAgainWhereAStampMayNameAWriter(t *testing.T) {
	stamped := func(o *kube.Object) { o.Annotations = map[string]string{v1alpha1.AnnotationWriter: "ci"} }
	for name, test := range map[string]struct {
		last    v1alpha1.ObservedState
		object  func(*kube.Object)
		newest  bool
		failure error
		want    string
		version stamp.Version
	}{
		"a change with a stamp": {
			last: v1alpha1.ObservedState{UID: "u", FullHash: "pl1:old"}, object: stamped, newest: true,
			want: "now", version: stamp.Version{ResourceVersion: "7", Progress: "9"},
		},
		"a change that was overwritten since": {
			last: v1alpha1.ObservedState{UID: "u", FullHash: "pl1:old"}, object: stamped,
			want: "now", version: stamp.Version{ResourceVersion: "7"},
		},
		"the same content under another uid": {
			last: v1alpha1.ObservedState{UID: "before", FullHash: "pl1:new"}, object: stamped,
			want: "now", version: stamp.Version{ResourceVersion: "7"},
		},
		"nothing changed": {
			last: v1alpha1.ObservedState{UID: "u", FullHash: "pl1:new"}, object: stamped, newest: true,
			want: "last", version: stamp.Version{ResourceVersion: "7", Progress: "9"},
		},
		"a change without a stamp": {
			last: v1alpha1.ObservedState{UID: "u", FullHash: "pl1:old"}, object: func(*kube.Object) {},
			want: "last", version: stamp.Version{ResourceVersion: "7"},
		},
		"a policy that cannot be read decides nothing": {
			last: v1alpha1.ObservedState{UID: "u", FullHash: "pl1:old"}, object: stamped, failure: errors.New("away"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := &policyOf{failure: test.failure}
			r := &Reconciler{Stamps: policy}
			object := &kube.Object{FullHash: "pl1:new"}
			object.UID, object.ResourceVersion = "u", "7"
			test.object(object)
			in := specguard.Input{State: specguard.State{Observed: test.last, Authorized: &v1alpha1.AuthorizedState{}}}
			s := &subject{key: webKey, view: kube.View{Progress: "9"}}
			got, err := r.stamps(t.Context(), s, in, test.newest, observed{object: object})
			if !errors.Is(err, test.failure) || got.Policy != test.want {
				t.Errorf("%+v, %v", got, err)
			}
			if diff := cmp.Diff(test.version, policy.version); diff != "" {
				t.Errorf("version (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutAPolicyStampsProveNothing(t *testing.T) {
	r := &Reconciler{}
	s := &subject{key: webKey}
	got, err := r.stamps(t.Context(), s, specguard.Input{}, true, observed{object: &kube.Object{}})
	if err != nil || got != (specguard.Stamps{}) || r.settledStamps(s) != "" {
		t.Errorf("%+v, %v", got, err)
	}
}
