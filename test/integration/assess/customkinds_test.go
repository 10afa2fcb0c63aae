// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// withScale gives a custom kind the subresource /scale.
func withScale(crd *apiextensions.CustomResourceDefinition) {
	crd.Spec.Versions[0].Subresources = &apiextensions.CustomResourceSubresources{
		Scale: &apiextensions.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"},
	}
}

// agentsKind makes a kind one of a group of k8s.io, for which the API server demands an
// approval, with a number of replicas.
func agentsKind(crd *apiextensions.CustomResourceDefinition) {
	crd.Annotations = map[string]string{"api-approved.kubernetes.io": "unapproved, experimental-only"}
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{
		"spec": {Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"replicas": {Type: "integer"}}},
	}}
}

// sandboxPool makes an object of a custom kind, guarded and in sync.
func (w *world) sandboxPool() *unstructured.Unstructured {
	w.t.Helper()
	w.guardKind("agents.k8s.io/v1", "SandboxPool", "sandboxpools.agents.k8s.io")
	pool := w.object(`{"apiVersion":"agents.k8s.io/v1","kind":"SandboxPool","spec":{"replicas":3}}`, "web")
	w.Eventually("the API server takes a pool", func() error { return w.As(ci).Create(w.Ctx(), pool) })
	w.UntilIs("web", "InSync")
	return pool
}

// scale writes the number of replicas through /scale, as kubectl scale does.
func (w *world) scale(user string, pool *unstructured.Unstructured, replicas int) {
	w.t.Helper()
	w.Eventually("the API server serves /scale", func() error {
		return w.As(user).SubResource("scale").Patch(w.Ctx(), pool.DeepCopy(), guarded.ScalePatch(replicas))
	})
}

const scaledByNone = "Drifted: Changed /spec/replicas by ? (Unknown, ManagedFields)"

// M3 of the guard's review: the rules took each group of k8s.io for a built-in one
// without /scale, so that CI's stamp, which had not moved, proved the change.
func TestAForeignScaleOfACustomKindOfK8sIOIsNotAuthorizedAsCIs(t *testing.T) {
	w := newWorld(t)
	p := start(t)
	w.InstallKind("agents.k8s.io", "SandboxPool", "sandboxpools", apiextensions.NamespaceScoped, agentsKind, withScale)
	pool := w.sandboxPool()
	w.scale(mallory, pool, 7)
	w.UntilIs("web", scaledByNone)
	// The same while no assessor runs.
	w.merge(ci, pool, `{"spec":{"replicas":3}}`)
	w.UntilIs("web", "InSync")
	p.Halt(t)
	w.scale(mallory, pool, 1)
	start(t)
	w.UntilIs("web", scaledByNone)
}

func TestACustomKindThatGainsScaleIsNoLongerProvenByItsStamp(t *testing.T) {
	w := newWorld(t)
	p := start(t)
	var crd *apiextensions.CustomResourceDefinition
	w.InstallKind("agents.k8s.io", "SandboxPool", "sandboxpools", apiextensions.NamespaceScoped, agentsKind,
		func(c *apiextensions.CustomResourceDefinition) { crd = c })
	pool := w.sandboxPool()
	// While the kind has no /scale, the stamp proves a number that nobody saw written.
	p.Halt(t)
	w.merge(ci, pool, `{"spec":{"replicas":4}}`)
	p = start(t)
	w.authorized("web", 2)
	p.Halt(t)
	before := crd.DeepCopy()
	withScale(crd)
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	w.Must(err)
	w.Must(c.Patch(w.Ctx(), crd, client.MergeFrom(before)))
	w.scale(mallory, pool, 7)
	start(t)
	w.UntilIs("web", scaledByNone)
}

// authorized waits until an object is in sync with the revision of a number.
func (w *world) authorized(name string, revision int64) {
	w.t.Helper()
	w.Until(name, "the change is authorized", func(b *v1alpha1.Baseline) error {
		if guarded.Authorized(b) != revision || b.Status.State != v1alpha1.StateInSync {
			return fmt.Errorf("it is not: revision %d, %s", guarded.Authorized(b), guarded.Describe(b))
		}
		return nil
	})
}
