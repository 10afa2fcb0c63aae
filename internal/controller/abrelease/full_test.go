// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// M3 of the review of the mesh.
func TestAReleaseOfAServiceThatIsNotThereTakesNoRoom(t *testing.T) {
	w := newWorld(t)
	w.absent = true
	r := w.look()
	if c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady); r.Status.Effective != nil || c == nil || c.Reason != "ServiceNotFound" {
		t.Errorf("in force is %+v, Ready %+v", r.Status.Effective, c)
	}
	ledger := client.ObjectKey{Namespace: "plumbline-system", Name: release.LedgerName}
	if err := w.Client.Get(t.Context(), ledger, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ledger: %v", err)
	}
	w.absent = false
	if r := w.look(); r.Status.Effective == nil || r.Status.Effective.Sequence != 1 {
		t.Errorf("with the Service in force is %+v", r.Status.Effective)
	}
	w.absent = true // what is in force stays, and goes on
	w.ready["canary"] = 0
	if r := w.look(); r.Status.Effective == nil {
		t.Error("what was in force is lost with the Service")
	}
}

func TestANamespaceThatFillsTheLedgerIsToldAndKeepsNoOtherOut(t *testing.T) {
	for namespace, inForce := range map[string]bool{"shop": false, "evil": true} {
		t.Run(namespace, func(t *testing.T) {
			w := newWorld(t)
			data := map[string]string{}
			for i := range 6000 {
				data[fmt.Sprintf("%s.s%d", namespace, i)] = release.Entry{Plain: 1000}.String()
			}
			if err := w.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: release.LedgerName}, Data: data}); err != nil {
				t.Fatal(err)
			}
			r := w.look()
			if (r.Status.Effective != nil) != inForce {
				t.Fatalf("in force is %+v", r.Status.Effective)
			}
			if c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady); !inForce && (c == nil || !strings.Contains(c.Message, "the sequences of the Services of namespace shop would take")) {
				t.Errorf("Ready is %+v", c)
			}
		})
	}
}
