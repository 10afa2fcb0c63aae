// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

const (
	// twinGroup has the kinds of Plumbline once more, without its policies.
	twinGroup = "twin.example.org"
	// filledManager is the manager whose entry fillMetadata fills.
	filledManager = "filled"
	// denyTrusts is the trusted writer of the guard of mode Deny.
	denyTrusts = "system:serviceaccount:cicd:deployer"
)

// expressionPlace is one side of a comparison: an object, and those who write it.
type expressionPlace struct {
	b       *testing.B
	c       *expressionCase
	path    string
	object  map[string]any
	creator rest.Interface
	writer  rest.Interface
	refused bool
}

// place makes the side that is guarded, or the one beside it.
func (c *expressionCase) place(b *testing.B, beside, refused bool) *expressionPlace {
	b.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.object("expressions"))
	if err != nil {
		b.Fatal(err)
	}
	delete(object, "status")
	resource, namespace, creator := c.resource, tenant, c.creator
	switch {
	case beside && c.twin:
		resource.Group, creator = twinGroup, "" // the roles of Plumbline do not cover it
		installTwin(b, c.resource.Resource)
	case beside:
		namespace = excluded
	}
	u := unstructured.Unstructured{Object: object}
	kind, err := admin.GroupVersionKindFor(c.object("expressions"))
	if err != nil {
		b.Fatal(err)
	}
	kind.Group = resource.Group
	u.SetGroupVersionKind(kind)
	namespaces := path.Join("namespaces", namespace)
	if u.GetNamespace() == "" { // of the cluster
		namespace, namespaces = "", ""
	}
	u.SetNamespace(namespace)
	prefix := "/apis/" + resource.Group
	if resource.Group == "" {
		prefix = "/api"
	}
	return &expressionPlace{
		b: b, c: c, object: object, refused: refused,
		path:    path.Join(prefix, resource.Version, namespaces, resource.Resource),
		creator: restClient(b, creator), writer: restClient(b, c.writer),
	}
}

// restClient acts as a cluster administrator.
func restClient(b *testing.B, user string) rest.Interface {
	b.Helper()
	kube, err := kubernetes.NewForConfig(apiserver.Impersonate(config, cmp.Or(user, "root"), "roots"))
	if err != nil {
		b.Fatal(err)
	}
	return kube.RESTClient()
}

// create makes the object with so many entries of a part of its metadata.
func (p *expressionPlace) create(filling string, size int) {
	p.b.Helper()
	u := &unstructured.Unstructured{Object: p.object}
	fillMetadata(u, filling, size)
	p.remove()
	if p.c.creates {
		return
	}
	if err := p.send(p.creator.Post().AbsPath(p.path), u); err != nil {
		p.b.Fatal(err)
	}
	if filling == "managedFields" && size > 0 {
		p.fillManagedFields(size)
	}
}

// send sends an object as JSON.
func (p *expressionPlace) send(request *rest.Request, u *unstructured.Unstructured) error {
	p.b.Helper()
	body, err := json.Marshal(u)
	if err != nil {
		p.b.Fatal(err)
	}
	return request.SetHeader("Content-Type", "application/json").Body(body).Do(p.b.Context()).Error()
}

// fillManagedFields gives an apply so many annotations, which the object lacks. The API
// server takes entries from an update only.
func (p *expressionPlace) fillManagedFields(size int) {
	p.b.Helper()
	raw, err := p.creator.Get().AbsPath(p.path, "expressions").DoRaw(p.b.Context())
	if err != nil {
		p.b.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		p.b.Fatal(err)
	}
	keys := make([]string, size)
	for i := range keys {
		keys[i] = fmt.Sprintf("%q:{}", "f:"+fillingKey(i))
	}
	u.SetManagedFields([]metav1.ManagedFieldsEntry{applyEntry(filledManager, `{"f:metadata":{"f:annotations":{`+strings.Join(keys, ",")+`}}}`)})
	if err := p.send(p.creator.Put().AbsPath(p.path, "expressions"), u); err != nil {
		p.b.Fatal(err)
	}
}

// remove removes the object, if it is there.
func (p *expressionPlace) remove() {
	p.b.Helper()
	// Administrators pass each policy.
	err := restClient(p.b, p.remover()).Delete().AbsPath(p.path, "expressions").Param("gracePeriodSeconds", "0").Do(p.b.Context()).Error()
	if client.IgnoreNotFound(err) != nil {
		p.b.Fatal(err)
	}
}

func (p *expressionPlace) remover() string {
	if p.c.twin && !strings.Contains(p.path, twinGroup) {
		return p.c.creator
	}
	return denyTrusts
}

// write makes the write of the case, and tells how long the API server took.
func (p *expressionPlace) write(i int) time.Duration {
	p.b.Helper()
	request, err := p.request(i)
	if err != nil {
		p.b.Fatal(err)
	}
	began := time.Now()
	err = request.Do(p.b.Context()).Error()
	took := time.Since(began)
	if refused := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "plumbline-deny"); refused != p.refused || err != nil && !refused {
		p.b.Fatalf("the answer to the write is %v, expected to be refused: %t", err, p.refused)
	}
	return took
}

// request is the write of the case.
func (p *expressionPlace) request(i int) (*rest.Request, error) {
	if p.c.creates {
		body, err := json.Marshal(p.object)
		return p.writer.Post().AbsPath(p.path).Param("dryRun", "All").SetHeader("Content-Type", "application/json").Body(body), err
	}
	request := p.writer.Patch(cmp.Or(p.c.patchType, types.MergePatchType)).AbsPath(p.path, "expressions", p.c.subresource).Body([]byte(p.c.patch(i)))
	if p.c.manager != "" {
		request = request.Param("fieldManager", p.c.manager)
	}
	if p.c.dryRun {
		request = request.Param("dryRun", "All")
	}
	return request, nil
}

// fillingKey names one of the entries that fill metadata, in three bytes.
func fillingKey(i int) string {
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return string([]byte{alphabet[i%62], alphabet[i/62%62], alphabet[i/62/62%62]})
}

// fillMetadata gives an object so many annotations, labels or owners.
func fillMetadata(u *unstructured.Unstructured, filling string, size int) {
	entries := map[string]string{}
	var owners []metav1.OwnerReference
	for i := range size {
		entries[fillingKey(i)] = ""
		owners = append(owners, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: types.UID(fillingKey(i))})
	}
	switch filling {
	case "annotations":
		maps.Copy(entries, u.GetAnnotations())
		u.SetAnnotations(entries)
	case "labels":
		maps.Copy(entries, u.GetLabels())
		u.SetLabels(entries)
	case "owners":
		u.SetOwnerReferences(owners[:size])
	}
}

// installWebhooks registers both webhooks until the end. Nothing listens: a call would
// fail, and the write would go on.
func installWebhooks(b *testing.B) {
	b.Helper()
	for _, object := range manifest {
		kind := object.GetKind()
		if object.GetName() != "plumbline" || kind != "MutatingWebhookConfiguration" && kind != "ValidatingWebhookConfiguration" {
			continue
		}
		made := object.DeepCopy()
		if err := admin.Create(b.Context(), made); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			if err := admin.Delete(context.WithoutCancel(b.Context()), made); err != nil {
				b.Error(err)
			}
		})
	}
}

// installTwin copies a kind of Plumbline, with its schema, into another group.
func installTwin(b *testing.B, plural string) {
	b.Helper()
	i := slices.IndexFunc(manifest, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "CustomResourceDefinition" && o.GetName() == plural+".plumbline.dev"
	})
	if i < 0 {
		b.Fatalf("the chart has no kind %s", plural)
	}
	twin := manifest[i].DeepCopy()
	twin.SetName(plural + "." + twinGroup)
	if err := unstructured.SetNestedField(twin.Object, twinGroup, "spec", "group"); err != nil {
		b.Fatal(err)
	}
	if err := admin.Create(b.Context(), twin); err != nil && !apierrors.IsAlreadyExists(err) {
		b.Fatal(err)
	}
	asRoot := restClient(b, "")
	poll.Until(b, patience, "the twin of "+plural+" is served", func() error {
		return asRoot.Get().AbsPath("/apis", twinGroup, "v1alpha1", plural).Do(b.Context()).Error()
	})
}

// denyInTenant puts a guard of mode Deny in force over the tenants' namespace, until the
// end.
func denyInTenant(b *testing.B) {
	b.Helper()
	g := &v1alpha1.ClusterSpecGuard{ObjectMeta: metav1.ObjectMeta{Name: "expressions"}}
	g.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}
	g.Spec.Mode = v1alpha1.GuardModeDeny
	g.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": tenant}}
	g.Spec.TrustedWriters.ServiceAccounts = []v1alpha1.ServiceAccountReference{{Namespace: "cicd", Name: "deployer"}}
	if err := admin.Create(b.Context(), g); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(b.Context()), g); err != nil {
			b.Error(err)
		}
	})
	poll.Until(b, patience, "the guard denies", func() error {
		err := admin.Create(b.Context(), deployment("denied"), client.DryRunAll)
		if err == nil {
			return errors.New("a creation is allowed")
		}
		if !strings.Contains(err.Error(), "plumbline-deny") {
			return fmt.Errorf("the answer is no refusal by Deny: %w", err)
		}
		return nil
	})
}
