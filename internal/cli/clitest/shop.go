// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var deploymentGVK = canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}

const driftedSpec = `{"replicas":5,"template":{"spec":{"containers":[{"env":[{"name":"API_TOKEN","value":"old-secret"}],"image":"nginx:1.28","name":"app"}]}}}`

// Shop is a namespace with a drifted Deployment under guard, and a policy about it.
func Shop(t *testing.T, change ...func(*v1alpha1.RemediationPolicy)) Cluster {
	t.Helper()
	live := LiveBody(t, driftedSpec)
	hash := func(body string) string {
		h, err := canon.HashBody([]byte(body), deploymentGVK)
		Must(t, err)
		return string(h)
	}
	authorized := hash(LiveBody(t, AuthorizedSpec))
	web := BaselineOf("web", Drifted(Found("/spec/replicas", "1", "5", "bob", time.Hour), Found("/spec/template/spec/containers/[name=app]/image", `"nginx:1.27"`, `"nginx:1.28"`, "bob", time.Hour)), func(b *v1alpha1.Baseline) {
		b.Spec.Authorized.Hash, b.Spec.Authorized.Revision = authorized, "deployments.apps.web-3"
		b.Status.Observed = v1alpha1.ObservedState{Hash: hash(live), FullHash: hash(live), UID: "u"}
		b.Status.Severity.Urgency = v1alpha1.UrgencyNormal
		b.Status.Severity.Factors = []v1alpha1.SeverityFactor{{Name: "DriftType", Score: 80, Weight: 30}, {Name: "DriftAge", Score: 50, Weight: 25}}
	})
	revision := RevisionOf(t, web, 3, `{"spec":`+AuthorizedSpec+`}`)
	revision.Spec.Hash = authorized
	object := &unstructured.Unstructured{}
	Must(t, json.Unmarshal([]byte(live), &object.Object))
	object.SetNamespace("shop")
	object.SetResourceVersion("")
	named := metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "shop"}}
	objects := []client.Object{
		web, revision, object, PolicyOf("production", change...), BaselineOf("calm"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: named.MatchLabels}},
		&v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "production"}, Spec: v1alpha1.EnvironmentSpec{Criticality: v1alpha1.CriticalityProduction, NamespaceSelector: named}},
		&v1alpha1.SpecGuard{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "apps"},
			Spec:       v1alpha1.GuardSpec{Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}},
		},
	}
	return Cluster{Objects: objects, Live: map[string]string{"web": live}, Targets: Targets{Live: live}}
}

// Vanished is the shop after bob deleted the Deployment, which had two owners.
func Vanished(t *testing.T, change ...func(*v1alpha1.RemediationPolicy)) Cluster {
	t.Helper()
	f := Shop(t, append(change, func(p *v1alpha1.RemediationPolicy) { p.Spec.Exceptions.Recreate = v1alpha1.Allowed })...)
	f.Objects = slices.DeleteFunc(f.Objects, func(o client.Object) bool {
		_, live := o.(*unstructured.Unstructured)
		return live
	})
	for _, o := range f.Objects {
		switch o := o.(type) {
		case *v1alpha1.Baseline:
			if o.Spec.Target.Name != "web" {
				continue
			}
			o.Status.State = v1alpha1.StateMissing
			o.Status.Observed = v1alpha1.ObservedState{UID: "u", Hash: specguard.HashAbsent, Metadata: &v1alpha1.ObservedMetadata{
				OwnerReferences: []v1alpha1.ObservedOwner{
					{APIVersion: "apps/v1", Kind: "Deployment", Name: "parent", UID: "uid-parent", Controller: v1alpha1.Enabled},
					{APIVersion: "apps/v1", Kind: "Deployment", Name: "gone", UID: "uid-gone"},
				},
			}}
			gone := Found("", "", "", "bob", time.Hour)
			gone.Class, gone.Type = v1alpha1.ClassObjectMissing, v1alpha1.DriftMissing
			o.Status.Findings, o.Status.FindingsTotal = []v1alpha1.Finding{gone}, 1
		case *v1alpha1.SpecGuard:
			o.Spec.ResyncPeriod = &metav1.Duration{Duration: time.Hour}
		}
	}
	parent := &unstructured.Unstructured{}
	parent.SetGroupVersionKind(schema.GroupVersionKind(deploymentGVK))
	parent.SetNamespace("shop")
	parent.SetName("parent")
	parent.SetUID("uid-parent")
	f.Objects = append(f.Objects, parent)
	f.Targets.Live = ""
	return f
}

// TooOld has a policy find the drift of the shop too old.
func TooOld(p *v1alpha1.RemediationPolicy) {
	p.Spec.MaximumDriftAge = &metav1.Duration{Duration: time.Minute}
}

// AuthorizedSpec is the authorized spec of the Deployment of [Shop].
const AuthorizedSpec = `{"replicas":1,"template":{"spec":{"containers":[{"env":[{"name":"API_TOKEN","value":"old-secret"}],"image":"nginx:1.27","name":"app"}]}}}`
