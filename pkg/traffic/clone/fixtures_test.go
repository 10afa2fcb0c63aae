// SPDX-License-Identifier: Apache-2.0

package clone_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// baselineYAML is a Deployment as Argo CD and Helm leave it, with marks of both.
const baselineYAML = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  uid: a-uid
  resourceVersion: "77"
  generation: 4
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {app: web, team: shop, app.kubernetes.io/instance: shop, app.kubernetes.io/managed-by: Helm, plumbline.dev/plan: p-1}
  annotations:
    argocd.argoproj.io/tracking-id: shop:apps/Deployment:shop/web
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    deployment.kubernetes.io/revision: "9"
    meta.helm.sh/release-name: shop
    plumbline.dev/writer: argocd
    owner: shop
  managedFields: [{manager: argocd}]
  finalizers: [example.com/hold]
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: c, uid: c-uid}]
spec:
  replicas: 6
  paused: true
  futureField: {kept: true}
  selector: {matchLabels: {app: web, tier: front}}
  template:
    metadata:
      labels: {app: web, tier: front, app.kubernetes.io/instance: shop}
      annotations: {kubectl.kubernetes.io/restartedAt: "2026-01-02T00:00:00Z", checksum: abc}
    spec:
      initContainers:
      - {name: migrate, image: "migrate:1"}
      containers:
      - name: app
        image: shop:1
        env: [{name: FIRST, value: a}, {name: MODE, valueFrom: {configMapKeyRef: {name: c, key: m}}}, {name: LAST, value: z}]
status: {replicas: 6, readyReplicas: 6}
`

const twoContainers = `
      - name: side
        image: side:1
`

var service = map[string]string{"app": "web"}

func baseline(t testing.TB, more ...string) *unstructured.Unstructured {
	t.Helper()
	text := baselineYAML
	for _, m := range more {
		text = replaceOnce(t, text, "status: {", m[1:]+"status: {")
	}
	return objectOf(t, text)
}

func objectOf(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return out
}

func releaseWith(c *v1alpha1.VariationClone) *v1alpha1.ABRelease {
	if c.PodLabels == nil {
		c.PodLabels = map[string]v1alpha1.LabelValue{"app": "web-canary"}
	}
	return &v1alpha1.ABRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "r-uid"},
		Spec: v1alpha1.ABReleaseSpec{
			ServiceName: "web", Stable: "stable",
			Variations: []v1alpha1.Variation{
				{Name: "stable", Workload: &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "web"}},
				{Name: "canary", Clone: c},
			},
		},
	}
}

func variable(name, value string) v1alpha1.CloneVariable {
	return v1alpha1.CloneVariable{Name: name, Value: &value}
}
