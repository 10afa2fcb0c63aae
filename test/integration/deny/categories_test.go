// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// TestAGuardOfACategoryDeniesWhatItsKindsWouldDeny tries each way to a workload: the object,
// /scale, and the pods behind it.
func TestAGuardOfACategoryDeniesWhatItsKindsWouldDeny(t *testing.T) {
	s := newShop(t, nil)
	s.guarded(t, func(g *v1alpha1.ClusterSpecGuard) {
		g.Spec.Resources, g.Spec.Categories = nil, []v1alpha1.ResourceCategory{v1alpha1.CategoryStorage, v1alpha1.CategoryWorkloads}
	})
	d := s.deployed(t, "web")
	for name, test := range map[string]struct {
		act     act
		refused string
	}{
		"the object":    {setImage, "tina may not change Deployment "},
		"/scale":        {scaleTo(5), "tina may not scale deployments "},
		"a deletion":    {remove(), "A deletion carries no reason"},
		"a creation":    {createGenerated, "tina may not create Deployment "},
		"a restart":     {merge(`{` + restart + `}`), ""},
		"an annotation": {merge(`{"metadata":{"annotations":{"note":"x"}}}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.act(t.Context(), tenant(t), d.DeepCopy())
			if test.refused == "" {
				wantAllowed(t, err)
				return
			}
			wantRefused(t, err, test.refused)
		})
	}
	debug := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"ephemeralContainers":[{"name":"debug","image":"shop:1"}]}}`))
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "settings"}}
	mustDo(t, admin.Create(t.Context(), settings))
	for name, test := range map[string]struct {
		owner   metav1.OwnerReference
		refused bool
	}{
		"deployment": {metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name, UID: d.UID}, true},
		"configmap":  {metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: settings.Name, UID: settings.UID}, false},
	} {
		t.Run("a pod of a "+name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "of-" + name}}
			pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "shop:1"}}
			test.owner.Controller = new(true)
			pod.OwnerReferences = []metav1.OwnerReference{test.owner}
			mustDo(t, admin.Create(t.Context(), pod))
			dry := &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}}
			err := as(t, "root", "roots").SubResource("ephemeralcontainers").Patch(t.Context(), pod, debug, dry)
			if test.refused {
				wantRefused(t, err, "root may not change Pod ")
				return
			}
			wantAllowed(t, err)
		})
	}
}
