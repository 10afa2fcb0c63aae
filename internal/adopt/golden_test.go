// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"encoding/json"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func decodeYAML(t interface{ Fatal(...any) }, manifest []byte, into any) {
	if err := yaml.UnmarshalStrict(manifest, into); err != nil {
		t.Fatal(err)
	}
}

// TestReport_Golden is one busy team: everything that a report can say is in it.
func TestReport_Golden(t *testing.T) {
	q := question(hpa("web"), func(q *Question) {
		q.Draft = Draft{
			Kind: ClusterSpecGuard, Name: "team", Spec: v1alpha1.ClusterGuardSpec{
				GuardSpec: v1alpha1.GuardSpec{Resources: []v1alpha1.GuardedResource{
					{APIVersion: "apps/v1", Kind: "Deployment"}, {APIVersion: "apps/v1", Kind: "ReplicaSet"}, {APIVersion: "example.com/v1", Kind: "Widget"},
				}},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}},
			},
		}
		q.NamespaceLabels = map[string]map[string]string{"shop": {"team": "shop"}, "other": {"team": "other"}, "ci": nil, "argocd": nil}
		q.Installation.Registered = map[GroupKind]bool{{"apps", "Deployment"}: true, {"apps", "ReplicaSet"}: true}
		q.Autoscalers = append(q.Autoscalers,
			Autoscaler{Kind: ScaledObject, Namespace: "shop", Name: "queue", Target: GroupKind{"apps", "Deployment"}, TargetName: "worker"},
			Autoscaler{Kind: VerticalPodAutoscaler, Namespace: "shop", Name: "sizes", Target: GroupKind{"apps", "Deployment"}, TargetName: "web"},
			Autoscaler{Kind: HorizontalPodAutoscaler, Namespace: "shop", Name: "widgets", Target: GroupKind{"example.com", "Widget"}, TargetName: "w"},
			Autoscaler{Kind: HorizontalPodAutoscaler, Namespace: "other", Name: "elsewhere", Target: GroupKind{"apps", "Deployment"}, TargetName: "web"})
	})
	s, err := NewSurvey(q)
	if err != nil {
		t.Fatal(err)
	}
	add := func(gvk canon.GVK, o *metav1.ObjectMeta) { s.Add(gvk, o) }
	add(deployment, object("shop", "web", stamped(ci), written("pipeline", hour, image), through("scale", "kube-controller-manager", 0, replicas)))
	add(deployment, object("shop", "cart", stamped("alice"), written("pipeline", 48*hour, image), written("kubectl-edit", 2*hour, replicas), written("kubectl-rollout", 3*hour, restart)))
	add(deployment, object("shop", "front", written("argocd-controller", 5*hour, image)))
	add(deployment, object("shop", "back", written("helm", 12*24*hour, image), stamped("forged")))
	add(deployment, object("shop", "worker", through("scale", "keda", 0, replicas), through("scale", "kubectl", 0, replicas)))
	add(deployment, object("shop", "fresh", createdAt(4*hour), stamped("bob"), written("kubectl-create", 4*hour, image)))
	add(deployment, object("shop", "debugged", stamped("system:serviceaccount:shop:debug"), written("debugger", 48*hour, image)))
	add(deployment, object("shop", "edited", stamped("system:serviceaccount:ci:other"), written("kubectl-edit", 48*hour, image)))
	add(deployment, object("other", "web", written("helm", hour, image)))
	add(deployment, object("kube-system", "coredns", written("kubeadm", hour, image)))
	add(canon.GVK{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, object("shop", "web-1", ownedBy("apps/v1", "Deployment", "web")))
	add(canon.GVK{Group: "example.com", Version: "v1", Kind: "Widget"}, object("shop", "w", written("widget-operator", 30*hour, replicas)))
	accounts := Accounts{}
	for _, a := range s.Candidates() {
		accounts[a] = Exists
	}
	accounts[keda.account] = ExistenceUnknown
	r, err := s.Report(accounts)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "report.json"), append(encoded, '\n'))
	manifest, err := r.YAML()
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "guard.yaml"), manifest)
}
