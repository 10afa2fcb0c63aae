// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// UnderClusterGuard makes one guard over the Deployments of several namespaces,
// which trusts [CI], and waits as UnderGuard does. The guard goes away with the test.
func (n *Namespace) UnderClusterGuard(namespaces ...string) *v1alpha1.ClusterSpecGuard {
	n.t.Helper()
	g := &v1alpha1.ClusterSpecGuard{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
	g.Spec.GuardSpec = Guard(n.Name).Spec
	g.Spec.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: namespaces,
	}}}
	n.Must(n.cluster.Admin.Create(n.Ctx(), g))
	n.t.Cleanup(func() {
		if err := n.cluster.Admin.Delete(context.WithoutCancel(n.Ctx()), g); err != nil {
			n.t.Errorf("removing the cluster guard: %v", err)
		}
	})
	n.Eventually("the cluster guard is ready", func() error {
		if err := n.cluster.Admin.Get(n.Ctx(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		return ready(g.Status.Conditions, g.Generation)
	})
	n.SecondOver(g.CreationTimestamp.Time)
	return g
}
