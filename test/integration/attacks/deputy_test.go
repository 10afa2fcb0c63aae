// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

func guardOf(namespace string, resources ...v1alpha1.GuardedResource) *v1alpha1.SpecGuard {
	return &v1alpha1.SpecGuard{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deputy"},
		Spec:       v1alpha1.GuardSpec{Resources: resources},
	}
}

func baselineFor(namespace, name string) *v1alpha1.Baseline {
	b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deployments.apps.web"}}
	b.Spec.Target = v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
	return b
}

// S5: what a tenant may not make Plumbline do for him.
func TestATenantCannotSendPlumblineElsewhere(t *testing.T) {
	victim := newPlace(t)
	victim.guard()
	victim.deploy("web")
	p := newPlace(t)
	deployments := v1alpha1.GuardedResource{APIVersion: "apps/v1", Kind: "Deployment"}
	clusterGuard := &v1alpha1.ClusterSpecGuard{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}
	clusterGuard.Spec.Resources = []v1alpha1.GuardedResource{deployments}
	clusterGuard.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": victim.namespace}}
	theirs, err := victim.baseline("web")
	victim.must(err)
	forgedRevision := &v1alpha1.BaselineRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: specguard.RevisionName("deployments.apps.web", 1)},
		Spec: v1alpha1.BaselineRevisionSpec{BaselineName: "deployments.apps.web", Number: 1, Hash: "pl1:sha256:00", AuthorizationTime: metav1.Now(),
			Encoding: v1alpha1.BodyEncodingZstd, Body: []byte("x"), Size: 2},
	}
	tests := map[string]struct {
		role string
		make client.Object
		want func(error) bool
	}{
		"a guard, with edit alone":                    {"edit", guardOf(p.namespace, deployments), apierrors.IsForbidden},
		"a guard in another namespace":                {"admin", guardOf(victim.namespace, deployments), apierrors.IsForbidden},
		"a guard of the whole cluster":                {"admin", clusterGuard, apierrors.IsForbidden},
		"an Environment":                              {"admin", &v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}, apierrors.IsForbidden},
		"GuardDefaults":                               {"admin", &v1alpha1.GuardDefaults{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}, apierrors.IsForbidden},
		"a guard of Secrets":                          {"admin", guardOf(p.namespace, v1alpha1.GuardedResource{APIVersion: "v1", Kind: "Secret"}), apierrors.IsInvalid},
		"a guard of Namespaces":                       {"admin", guardOf(p.namespace, v1alpha1.GuardedResource{APIVersion: "v1", Kind: "Namespace"}), apierrors.IsInvalid},
		"a guard of Nodes":                            {"admin", guardOf(p.namespace, v1alpha1.GuardedResource{APIVersion: "v1", Kind: "Node"}), apierrors.IsInvalid},
		"a guard of ClusterRoles":                     {"admin", guardOf(p.namespace, v1alpha1.GuardedResource{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}), apierrors.IsInvalid},
		"a guard of webhook configurations":           {"admin", guardOf(p.namespace, v1alpha1.GuardedResource{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"}), apierrors.IsInvalid},
		"a guard of custom resource definitions":      {"admin", guardOf(p.namespace, v1alpha1.GuardedResource{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}), apierrors.IsInvalid},
		"a guard of Plumbline's own kinds":            {"admin", guardOf(p.namespace, v1alpha1.GuardedResource{APIVersion: "plumbline.dev/v1alpha1", Kind: "Baseline"}), apierrors.IsInvalid},
		"a guard of a path for an apiVersion":         {"admin", guardOf(p.namespace, v1alpha1.GuardedResource{APIVersion: "../v1", Kind: "Deployment"}), apierrors.IsInvalid},
		"a guard of a path for a kind":                {"admin", guardOf(p.namespace, v1alpha1.GuardedResource{APIVersion: "apps/v1", Kind: "../../secrets"}), apierrors.IsInvalid},
		"a Baseline of its own":                       {"admin", baselineFor(p.namespace, "web"), apierrors.IsForbidden},
		"a Baseline that names a path":                {"admin", baselineFor(p.namespace, "../"+victim.namespace+"/web"), apierrors.IsForbidden},
		"a Baseline in another namespace":             {"admin", baselineFor(victim.namespace, "web2"), apierrors.IsForbidden},
		"a revision of its own":                       {"admin", forgedRevision, apierrors.IsForbidden},
		"a Baseline, with every right there is":       {"", baselineFor(p.namespace, "web"), apierrors.IsForbidden},
		"a revision, with every right there is":       {"", forgedRevision, apierrors.IsForbidden},
		"a guard of Secrets, with every right":        {"", guardOf(p.namespace, v1alpha1.GuardedResource{APIVersion: "v1", Kind: "Secret"}), apierrors.IsInvalid},
		"the Baseline of another namespace, accepted": {"admin", theirs, apierrors.IsForbidden},
	}
	people := map[string]client.Client{"edit": only(t, p.person("edit")), "admin": only(t, p.person("admin")), "": as(t, mallory)}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var err error
			if made := test.make.DeepCopyObject().(client.Object); made.GetResourceVersion() != "" {
				made.(*v1alpha1.Baseline).Spec.Accept = &v1alpha1.AcceptRequest{Hash: theirs.Status.Observed.Hash, RequestedBy: "admin-of-" + p.namespace}
				err = people[test.role].Update(t.Context(), made)
			} else {
				err = people[test.role].Create(t.Context(), made)
			}
			if !test.want(err) {
				t.Errorf("the answer is %v", err)
			}
		})
	}
	victim.untilIs("web", "InSync")
}

// S5: a guard reaches no further than its namespace, and no further than the
// kinds that the platform team has given the assessor to read.
func TestATenantsGuardCoversNothingButTheTenantsNamespaceAndTheChartsKinds(t *testing.T) {
	victim := newPlace(t)
	victim.must(as(t, ci).Create(t.Context(), deployment(victim.namespace, "web")))
	p := newPlace(t)
	adam := only(t, p.person("admin"))
	g := guardOf(p.namespace, v1alpha1.GuardedResource{APIVersion: "apps/v1", Kind: "Deployment"}, v1alpha1.GuardedResource{APIVersion: "v1", Kind: "ServiceAccount"})
	p.must(adam.Create(t.Context(), g))
	p.must(adam.Create(t.Context(), deployment(p.namespace, "mine")))
	p.eventually("the guard says that a kind cannot be read", func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		for _, c := range g.Status.Conditions {
			if c.Type == v1alpha1.ConditionReady && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "ServiceAccount") {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %+v", g.Status.Conditions)
	})
	p.eventually("the tenant's object has a baseline", func() error { _, err := p.baseline("mine"); return err })
	if b, err := victim.baseline("web"); !apierrors.IsNotFound(err) {
		t.Errorf("another namespace got a baseline: %+v, %v", b.Spec, err)
	}
}

// S5: "example.org.web" among the built-in deployments and "web" among those of
// apps.example.org read alike when resource, group and name are put together.
func TestADottedNameDoesNotTakeTheBaselineOfAnotherKind(t *testing.T) {
	p := newPlace(t)
	p.guard(func(g *v1alpha1.SpecGuard) {
		g.Spec.Resources = append(g.Spec.Resources, v1alpha1.GuardedResource{APIVersion: "apps.example.org/v1", Kind: "Deployment"})
	})
	p.must(as(t, mallory).Create(t.Context(), deployment(p.namespace, "example.org.web")))
	p.untilOf("deployments", "apps", "example.org.web", "Drifted: Added object by mallory (Untrusted, WriterStamp)")
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.example.org/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": p.namespace, "name": "web"}, "spec": map[string]any{"size": int64(1)},
	}}
	p.must(as(t, ci).Create(t.Context(), theirs))
	p.eventually("both objects have a baseline", func() error {
		var list v1alpha1.BaselineList
		if err := admin.List(t.Context(), &list, client.InNamespace(p.namespace)); err != nil {
			return err
		}
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name+" of "+list.Items[i].Spec.Target.APIVersion)
		}
		if len(names) != 2 {
			return fmt.Errorf("there are %q", names)
		}
		return nil
	})
}

// S5 and S11: the owner of a namespace guards a kind that he may not read
// himself, and reads its objects in Plumbline's kinds. So guard.resources is to
// list only kinds that the owners of namespaces may read; the page on threats
// says so.
func TestANamespacesOwnerReadsThroughPlumblineWhatTheChartLetsItRead(t *testing.T) {
	p := newPlace(t)
	w := widget(p.namespace, "web", map[string]any{"level": "what only the platform may read"})
	p.must(as(t, ci).Create(t.Context(), w))
	adam := only(t, p.person("admin"))
	if err := adam.Get(t.Context(), client.ObjectKeyFromObject(w), w.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Fatalf("reading it directly: %v", err)
	}
	p.must(adam.Create(t.Context(), guardOf(p.namespace, v1alpha1.GuardedResource{APIVersion: "example.org/v1", Kind: "Widget"})))
	p.untilOf("widgets", "example.org", "web", "InSync")
	var revision v1alpha1.BaselineRevision
	key := client.ObjectKey{Namespace: p.namespace, Name: specguard.RevisionName(specguard.BaselineName("widgets", "example.org", "web"), 1)}
	p.must(adam.Get(t.Context(), key, &revision))
	stdout, stderr, _ := p.plugin("admin-of-"+p.namespace, nil, "history", "widgets.example.org/web", "--revision", "1")
	if !strings.Contains(stdout, "what only the platform may read") {
		t.Errorf("it is not read any more, so the page on threats can say so: %s%s", stdout, stderr)
	}
}
