// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var deploymentGVK = canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}

// fixture writes what the assessor writes.
type fixture struct {
	t         *testing.T
	namespace string
}

func (f fixture) deployment(name, image string) *appsv1.Deployment {
	f.t.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}},
			},
		},
	}
	must(f.t, kube.Create(f.t.Context(), d))
	return d
}

// body reads an object as the assessor does, in full.
func (f fixture) body(name string) []byte {
	f.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("apps/v1")
	u.SetKind("Deployment")
	must(f.t, kube.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, u))
	body, err := json.Marshal(u.Object)
	must(f.t, err)
	return body
}

func (f fixture) hash(name string) string {
	f.t.Helper()
	h, err := canon.HashBody(f.body(name), deploymentGVK)
	must(f.t, err)
	return string(h)
}

// authorize stores the live body as revision number of the Deployment's
// Baseline, which it creates when there is none, and marks it in sync.
func (f fixture) authorize(name, by string, number int64) *v1alpha1.Baseline {
	f.t.Helper()
	ctx := f.t.Context()
	parsed, err := canon.Parse(f.body(name), deploymentGVK)
	must(f.t, err)
	canonical := parsed.AppendCanonical(nil)
	encoder, err := zstd.NewWriter(nil)
	must(f.t, err)
	now := metav1.Now().Rfc3339Copy()
	hash := f.hash(name)
	baselineName := specguard.BaselineName("deployments", "apps", name)
	revision := &v1alpha1.BaselineRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: specguard.RevisionName(baselineName, number)},
		Spec: v1alpha1.BaselineRevisionSpec{
			BaselineName: baselineName, Number: number, Hash: hash, By: by, AuthorizationTime: now,
			Encoding: v1alpha1.BodyEncodingZstd, Body: encoder.EncodeAll(canonical, nil), Size: int64(len(canonical)),
		},
	}
	must(f.t, kube.Create(ctx, revision))
	baseline := f.newBaseline(name)
	baseline.Spec.Authorized = &v1alpha1.AuthorizedState{Hash: hash, Revision: revision.Name, Number: number, By: by, AuthorizationTime: now, Origin: v1alpha1.OriginCreated}
	if number == 1 {
		must(f.t, kube.Create(ctx, baseline))
	} else {
		wanted := baseline.Spec.Authorized
		must(f.t, kube.Get(ctx, client.ObjectKeyFromObject(baseline), baseline))
		baseline.Spec.Authorized = wanted
		must(f.t, kube.Update(ctx, baseline))
	}
	baseline.Status = v1alpha1.BaselineStatus{State: v1alpha1.StateInSync, Observed: v1alpha1.ObservedState{Hash: hash, FullHash: hash}}
	must(f.t, kube.Status().Update(ctx, baseline))
	return baseline
}

func (f fixture) newBaseline(name string) *v1alpha1.Baseline {
	return &v1alpha1.Baseline{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.namespace, Name: specguard.BaselineName("deployments", "apps", name),
			Labels: map[string]string{v1alpha1.LabelTargetKind: "Deployment"},
		},
		Spec: v1alpha1.BaselineSpec{Target: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name}},
	}
}

func finding(path, before, after, user string, seen time.Duration) v1alpha1.Finding {
	return v1alpha1.Finding{
		Path: path, Operation: v1alpha1.OperationChanged, Type: v1alpha1.DriftScale, Class: v1alpha1.ClassScale,
		Before: before, After: after,
		Actor:         v1alpha1.Actor{User: user, Class: v1alpha1.ActorUntrusted, Source: v1alpha1.ActorSourceAdmission, FieldManager: "kubectl"},
		FirstSeenTime: metav1.NewTime(time.Now().Add(-seen)).Rfc3339Copy(),
	}
}

// drift records findings and the hash that is observed now.
func (f fixture) drift(baseline *v1alpha1.Baseline, findings ...v1alpha1.Finding) {
	f.t.Helper()
	must(f.t, kube.Get(f.t.Context(), client.ObjectKeyFromObject(baseline), baseline))
	baseline.Status.State = v1alpha1.StateDrifted
	baseline.Status.Findings = findings
	baseline.Status.FindingsTotal = int32(len(findings))
	baseline.Status.FirstSeenTime = &findings[0].FirstSeenTime
	baseline.Status.Observed.Hash = f.hash(baseline.Spec.Target.Name)
	baseline.Status.Severity = &v1alpha1.Severity{Level: v1alpha1.SeverityMedium, Score: 50}
	must(f.t, kube.Status().Update(f.t.Context(), baseline))
}

func (f fixture) scale(name string, replicas int32) {
	f.t.Helper()
	d := &appsv1.Deployment{}
	must(f.t, kube.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, d))
	d.Spec.Replicas = &replicas
	must(f.t, kube.Update(f.t.Context(), d))
}

// drifted gives a Deployment that alice scaled after ci had authorized it.
func (f fixture) drifted(name string) *v1alpha1.Baseline {
	f.t.Helper()
	f.deployment(name, "nginx:1.27")
	baseline := f.authorize(name, "system:serviceaccount:ci:deployer", 1)
	f.scale(name, 5)
	f.drift(baseline, finding("/spec/replicas", "1", "5", "alice", time.Minute))
	return baseline
}
