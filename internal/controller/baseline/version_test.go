// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// M1 of the guard's review: a Baseline in another version kept the object from being
// judged, for ever.
func TestABaselineMovesToTheVersionThatIsJudged(t *testing.T) {
	b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: webKey.Namespace, Name: specguard.BaselineName("deployments", webKey.Group, webKey.Name)}}
	b.Spec.Target = v1alpha1.BaselineTarget{APIVersion: "apps/v1beta2", Kind: webKey.Kind, Name: webKey.Name}
	b.Spec.Authorized = &v1alpha1.AuthorizedState{Hash: "h", Number: 3, Revision: "r-3", By: "ci", AuthorizationTime: metav1.NewTime(epoch), Origin: v1alpha1.OriginCreated}
	b.Spec.Accept = &v1alpha1.AcceptRequest{Hash: "h", RequestedBy: "boss"}
	r := reconcilerOn(t, b)
	var err error
	if r.Metrics, err = NewMetrics(prometheus.NewRegistry(), clock.RealClock{}); err != nil {
		t.Fatal(err)
	}
	s := &subject{key: webKey, snapshot: &guards.Snapshot{Resources: map[schema.GroupVersionKind]kube.Resource{webKey.GroupVersionKind: {}}}}
	s.resource.Plural = "deployments"
	read := r.readBaseline(t.Context(), s)
	if err := r.resolveVersion(t.Context(), s, read); err != nil || read == nil {
		t.Fatalf("moving after %v: %v", read, err)
	}
	moved := &v1alpha1.Baseline{}
	if err := r.Live.Get(t.Context(), client.ObjectKeyFromObject(b), moved); err != nil {
		t.Fatal(err)
	}
	if KeyOf(moved) != webKey || moved.Spec.Authorized == nil || moved.Spec.Authorized.Number != 3 {
		t.Errorf("the baseline is %+v", moved.Spec)
	}
	// The authorized body is in the former version, and does not count in the new one.
	if moved.Spec.Authorized.Revision == "r-3" || moved.Spec.Accept != nil {
		t.Errorf("what was authorized, or asked for, in the other version counts: %+v", moved.Spec)
	}
	if err := r.readBaseline(t.Context(), s); err != nil {
		t.Errorf("the moved baseline is not read: %v", err)
	}
}
