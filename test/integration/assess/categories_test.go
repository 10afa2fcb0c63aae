// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// TestAGuardOfACategoryFindsDriftAndNamesTheKindsThatAreNotRegistered: of the category, the
// installation of the tests registers ConfigMaps alone.
func TestAGuardOfACategoryFindsDriftAndNamesTheKindsThatAreNotRegistered(t *testing.T) {
	w := newWorld(t)
	start(t)
	g := &v1alpha1.SpecGuard{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "configuration"}}
	g.Spec.Categories = []v1alpha1.ResourceCategory{v1alpha1.CategoryConfiguration}
	g.Spec.TrustedWriters.ServiceAccounts = []v1alpha1.ServiceAccountReference{{Namespace: "ci", Name: "deployer"}}
	w.Must(admin.Create(w.Ctx(), g))
	w.Resource = schema.GroupResource{Resource: "configmaps"}
	w.Eventually("the guard names the kinds of the category that it cannot read", func() error {
		if err := admin.Get(w.Ctx(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionFalse || strings.Contains(ready.Message, "ConfigMap") ||
			!strings.Contains(ready.Message, "spec.categories[0]: LimitRange") || !strings.Contains(ready.Message, "spec.categories[0]: ResourceQuota") {
			return fmt.Errorf("its condition Ready is %+v", ready)
		}
		return nil
	})
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "settings"}, Data: map[string]string{"level": "info"}}
	w.Must(w.As(ci).Create(w.Ctx(), settings))
	w.UntilIs("settings", "InSync")
	w.merge(mallory, settings, `{"data":{"level":"debug"}}`)
	w.UntilIs("settings", "Drifted: Changed /data/level by mallory (Untrusted, WriterStamp)")
}
