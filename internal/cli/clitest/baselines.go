// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// BaselineOf is an authorized Deployment in sync; change alters it.
func BaselineOf(name string, change ...func(*v1alpha1.Baseline)) *v1alpha1.Baseline {
	b := &v1alpha1.Baseline{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: specguard.BaselineName("deployments", "apps", name), UID: "uid-" + "b"},
		Spec: v1alpha1.BaselineSpec{
			Target: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			Authorized: &v1alpha1.AuthorizedState{
				Hash: "pl1:sha256:authorized", Number: 3, By: "system:serviceaccount:ci:deployer", AuthorizationTime: Before(2 * time.Hour), Origin: v1alpha1.OriginCreated,
			},
		},
		Status: v1alpha1.BaselineStatus{
			State: v1alpha1.StateInSync, Observed: v1alpha1.ObservedState{Hash: "pl1:sha256:authorized"}, Guards: []string{"SpecGuard/apps"},
		},
	}
	for _, c := range change {
		c(b)
	}
	return b
}

// Drifted adds findings, each by its user and of its age.
func Drifted(findings ...v1alpha1.Finding) func(*v1alpha1.Baseline) {
	return func(b *v1alpha1.Baseline) {
		b.Status.State = v1alpha1.StateDrifted
		b.Status.Observed.Hash = "pl1:sha256:drifted"
		b.Status.Findings = findings
		b.Status.FindingsTotal = int32(len(findings))
		b.Status.FirstSeenTime = &findings[0].FirstSeenTime
		b.Status.Severity = &v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Score: 71}
	}
}

// Found returns a finding of age at path: the value was, is now, and user wrote it.
func Found(path, was, now, user string, age time.Duration) v1alpha1.Finding {
	f := v1alpha1.Finding{
		Path: path, Operation: v1alpha1.OperationChanged, Type: v1alpha1.DriftScale, Class: v1alpha1.ClassScale,
		Before: was, After: now, FirstSeenTime: Before(age),
		Actor: v1alpha1.Actor{User: user, Class: v1alpha1.ActorUntrusted, Source: v1alpha1.ActorSourceWriterStamp, FieldManager: "kubectl-edit"},
	}
	switch {
	case was == "":
		f.Operation = v1alpha1.OperationAdded
	case now == "":
		f.Operation = v1alpha1.OperationRemoved
	}
	return f
}

// InState gives a Baseline the state s.
func InState(s v1alpha1.DriftState) func(*v1alpha1.Baseline) {
	return func(b *v1alpha1.Baseline) { b.Status.State = s }
}

// RevisionOf returns revision number of a Baseline, with body as its authorized body.
func RevisionOf(t *testing.T, b *v1alpha1.Baseline, number int64, body string) *v1alpha1.BaselineRevision {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer encoder.Close()
	return &v1alpha1.BaselineRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: specguard.RevisionName(b.Name, number)},
		Spec: v1alpha1.BaselineRevisionSpec{
			BaselineName: b.Name, Number: number, Hash: "pl1:sha256:authorized", By: "ci", AuthorizationTime: Before(time.Hour),
			Encoding: v1alpha1.BodyEncodingZstd, Body: encoder.EncodeAll([]byte(body), nil), Size: int64(len(body)),
		},
	}
}

// LiveBody is a Deployment with this spec, as the server would write it.
func LiveBody(t *testing.T, spec string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "generation": 7, "uid": "u", "resourceVersion": "42", "annotations": map[string]string{v1alpha1.AnnotationWriter: "alice"}},
		"spec":     json.RawMessage(spec), "status": map[string]any{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := canon.HashBody(body, canon.GVK{}); err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Fleet has an object in every state.
func Fleet() []client.Object {
	retired := Before(time.Minute)
	return []client.Object{
		BaselineOf("calm"),
		BaselineOf("imported", func(b *v1alpha1.Baseline) { b.Spec.Authorized.Origin = v1alpha1.OriginImported }),
		BaselineOf("web", Drifted(Found("/spec/replicas", "1", "5", "alice", 5*time.Minute), Found("/spec/paused", "", "true", "", time.Minute))),
		BaselineOf("fought", Drifted(Found("/spec/replicas", "1", "5", "bob", time.Hour)), func(b *v1alpha1.Baseline) {
			b.Status.Severity = &v1alpha1.Severity{Level: v1alpha1.SeverityCritical, Score: 92}
			b.Status.Contention = &v1alpha1.Contention{StartTime: Before(4 * time.Minute), With: []string{"bob", "ci"}}
		}),
		BaselineOf("gone", InState(v1alpha1.StateMissing), func(b *v1alpha1.Baseline) {
			b.Status.Observed.Hash = "absent"
			b.Status.FirstSeenTime = &retired
			b.Status.Findings = []v1alpha1.Finding{Found("", "{}", "", "bob", time.Minute)}
		}),
		BaselineOf("unread", InState(v1alpha1.StateUnknown), func(b *v1alpha1.Baseline) {
			b.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonBodyTooLarge, Message: "the body has 8.3 MiB, more than 8 MiB"}}
		}),
		BaselineOf("new", InState(""), func(b *v1alpha1.Baseline) { b.Spec.Authorized = nil }),
		BaselineOf("retired", func(b *v1alpha1.Baseline) { b.Status.State, b.Status.RetirementTime = v1alpha1.StateRetired, &retired }),
	}
}
