// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

// customKind makes a custom kind of any shape. With /scale the API server asks
// for a spec that is a map.
func customKind(t *testing.T, kind string, scalable bool) {
	t.Helper()
	plural := strings.ToLower(kind) + "s"
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &open},
		Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
	}
	if scalable {
		version.Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.com"}}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version},
	}
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
	mustDo(t, err)
	eventually(t, "the kind to be served", func() error {
		return as(t, "root", "roots").Create(t.Context(), custom(kind, "default", "probe", map[string]any{"spec": map[string]any{}}), client.DryRunAll)
	})
}

func custom(kind, namespace, name string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(u.Object, content)
	u.SetAPIVersion("example.com/v1")
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// TestShapesThatAnExpressionCannotWalkThrough: an expression that failed would
// let the write through, so none may fail, whatever a custom kind looks like.
func TestShapesThatAnExpressionCannotWalkThrough(t *testing.T) {
	customKind(t, "Widget", false)
	customKind(t, "Gadget", true)
	s := newShop(t, nil)
	s.guarded(t, func(g *v1alpha1.ClusterSpecGuard) {
		g.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "example.com/v1", Kind: "Widget"}, {APIVersion: "example.com/v1", Kind: "Gadget"}}
	})
	many := func(prefix string, n int) map[string]any {
		out := map[string]any{}
		for i := range n {
			out[fmt.Sprintf("%s%d", prefix, i)] = int64(i)
		}
		return out
	}
	tests := map[string]struct{ before, after map[string]any }{
		"a spec that is a list":             {map[string]any{"spec": []any{int64(1)}}, map[string]any{"spec": []any{int64(2), map[string]any{"a": "b"}}}},
		"a spec that becomes a list":        {map[string]any{"spec": map[string]any{"a": "b"}}, map[string]any{"spec": []any{int64(2)}}},
		"a spec that is text":               {map[string]any{"spec": "a"}, map[string]any{"spec": "b"}},
		"a spec that goes":                  {map[string]any{"spec": "a"}, map[string]any{}},
		"a template that is text":           {map[string]any{"spec": map[string]any{"template": "a"}}, map[string]any{"spec": map[string]any{"template": "b"}}},
		"a template whose metadata is text": {map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": "a"}}}, map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": "b"}}}},
		"replicas that are text":            {map[string]any{"spec": map[string]any{"replicas": "a"}}, map[string]any{"spec": map[string]any{"replicas": "b"}}},
		"5,000 fields":                      {map[string]any{"spec": "a"}, many("f", 5_000)},
		"5,000 fields of the spec":          {map[string]any{"spec": map[string]any{}}, map[string]any{"spec": many("f", 5_000)}},
		"another field beside 5,000":        {many("f", 5_000), many("f", 5_001)},
		"content outside of the spec":       {map[string]any{"spec": "a", "data": "a"}, map[string]any{"spec": "a", "data": "b"}},
	}
	number := 0
	root, trusted := as(t, "root", "roots"), as(t, ci)
	for name, test := range tests {
		number++
		w := custom("Widget", s.namespace, fmt.Sprintf("widget-%d", number), test.before)
		t.Run(name, func(t *testing.T) {
			mustDo(t, trusted.Create(t.Context(), w.DeepCopy()))
			next := custom("Widget", s.namespace, w.GetName(), test.after)
			mustDo(t, admin.Get(t.Context(), client.ObjectKeyFromObject(w), w))
			next.SetResourceVersion(w.GetResourceVersion())
			wantRefused(t, root.Update(t.Context(), next), "root may not change Widget")
			mustDo(t, trusted.Update(t.Context(), next))
		})
	}
	t.Run("the /scale of a custom kind", func(t *testing.T) {
		w := custom("Gadget", s.namespace, "scaled", map[string]any{"spec": map[string]any{"replicas": int64(1)}})
		mustDo(t, trusted.Create(t.Context(), w))
		body := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`))
		wantRefused(t, root.SubResource("scale").Patch(t.Context(), w.DeepCopy(), body), "root may not scale gadgets")
		wantAllowed(t, as(t, ci).SubResource("scale").Patch(t.Context(), w.DeepCopy(), body))
	})
}

// TestMessagesStayWhole: a message that is too long or has more than one line is
// replaced by the API server, without a word.
func TestMessagesStayWhole(t *testing.T) {
	s := newShop(t, nil)
	g := s.guarded(t, func(g *v1alpha1.ClusterSpecGuard) {
		g.Spec.TrustedWriters.Users = []string{"first\nsecond"}
		for i := range 63 {
			g.Spec.TrustedWriters.Users = append(g.Spec.TrustedWriters.Users, strings.Repeat("ü", 1000)+fmt.Sprint(i))
		}
	})
	err := setImage(t.Context(), as(t, strings.Repeat("long", 100), "roots"), s.deployed(t, "web"))
	wantRefused(t, err, strings.Repeat("long", 64)+"... may not change", "first second, üü", "...")
	if len(err.Error()) > 5*1024 {
		t.Errorf("a message of %d bytes", len(err.Error()))
	}
	g.Spec.TrustedWriters = v1alpha1.Writers{}
	mustDo(t, admin.Update(t.Context(), g))
	mustDo(t, awaitEnforced(t.Context(), g))
	d := deployment(s.namespace, "web")
	wantRefused(t, setImage(t.Context(), as(t, ci), d), "It trusts no writer.", "kubectl plumbline blame deployments.apps/web -n "+s.namespace)
}

// TestAnInstallationBlocksNothing: an API server that has just asked which kinds
// exist does not know the kind of the parameters for up to half a minute, and
// calls that an error of the policy.
func TestAnInstallationBlocksNothing(t *testing.T) {
	rotation.Share(t, 3)
	sharedConfig, sharedAdmin := config, admin
	defer func() { config, admin = sharedConfig, sharedAdmin }()
	server, err := apiserver.Start()
	mustDo(t, err)
	defer func() { mustDo(t, server.Stop()) }()
	config = server.Config
	admin, err = client.New(config, client.Options{})
	mustDo(t, err)
	mustDo(t, askForKinds(t.Context()))
	helm, err := rendered.Find(t.Context())
	mustDo(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	blocked := make(chan error, 1)
	writing := make(chan struct{})
	go func() {
		defer close(blocked)
		writer, err := client.New(server.Config, client.Options{})
		if err != nil {
			blocked <- err
			return
		}
		for n := 0; ctx.Err() == nil; n++ {
			if err := writer.Create(ctx, deployment("default", "probe"), client.DryRunAll); err != nil && ctx.Err() == nil {
				blocked <- err
				return
			}
			if n == 0 {
				close(writing)
			}
		}
	}()
	<-writing
	start := time.Now()
	mustDo(t, setUp(t.Context(), helm)) // until a guard, elsewhere, is in force
	t.Logf("in force after %s", time.Since(start).Round(100*time.Millisecond))
	cancel()
	if err := <-blocked; err != nil {
		t.Errorf("a write failed during the installation: %v", err)
	}
}

// askForKinds has the API server look for kinds of parameters, before ours
// exists: with two policies of somebody else, one whose kind is missing and one
// that shows that both were read.
func askForKinds(ctx context.Context) error {
	missing := othersPolicy("missing-kind", "missing")
	missing.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: "example.org/v1", Kind: "Missing"}
	marker := othersPolicy("marker", "configmaps")
	allow := admissionv1.AllowAction
	for _, policy := range []*admissionv1.ValidatingAdmissionPolicy{missing, marker} {
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Name}}
		binding.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}
		if policy == missing {
			binding.Spec.ParamRef = &admissionv1.ParamRef{Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: &allow}
		}
		if err := errors.Join(admin.Create(ctx, policy), admin.Create(ctx, binding)); err != nil {
			return fmt.Errorf("creating a policy of somebody else: %w", err)
		}
	}
	return waits.Until(ctx, patience, "the policies of somebody else are in force", func(ctx context.Context) error {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "marker"}}
		if err := admin.Create(ctx, probe, client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("a probe is not refused: %v", err) //nolint:errorlint // it may be nil
		}
		return nil
	})
}

func othersPolicy(name, resource string) *admissionv1.ValidatingAdmissionPolicy {
	groups := map[string]string{"missing": "example.org"}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{groups[resource]}, APIVersions: []string{"v1"}, Resources: []string{resource}},
	}}}}
	policy.Spec.Validations = []admissionv1.Validation{{Expression: "object.metadata.name != 'marker'"}}
	return policy
}
