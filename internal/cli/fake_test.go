// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// fakeCluster is a cluster in memory: what does not need a real API server is
// tested on it, and what needs a server that misbehaves.
type fakeCluster struct {
	objects []client.Object
	// live bodies by name; a name without one does not exist.
	live map[string]string
	// targets takes dry runs.
	targets targets
	// hooks come before the fake's own answer.
	hooks interceptor.Funcs
	// time of the API server; nil is that of the tests.
	time func() time.Time
}

func (f fakeCluster) connect(t *testing.T) *cluster {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	hooks := f.hooks
	if hooks.Create == nil {
		hooks.Create = answerWhoami
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(f.objects...).
		WithStatusSubresource(&v1alpha1.Baseline{}, &v1alpha1.RemediationPlan{}, &v1alpha1.RemediationRequest{}, &v1alpha1.RemediationPolicy{}, &v1alpha1.RemediationLedger{}).WithInterceptorFuncs(hooks).Build()
	return &cluster{
		WithWatch: api, mapper: mapper, namespace: "shop", targets: f.targets, time: f.time,
		live: func(_ context.Context, mapping *meta.RESTMapping, _, name string) ([]byte, error) {
			body, ok := f.live[name]
			if !ok {
				return nil, apierrors.NewNotFound(mapping.Resource.GroupResource(), name)
			}
			return []byte(body), nil
		},
	}
}

// answerWhoami answers the question that the plugin creates, and stores all else.
func answerWhoami(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
	review, asks := object.(*authenticationv1.SelfSubjectReview)
	if !asks {
		return api.Create(ctx, object, options...)
	}
	review.Status.UserInfo = authenticationv1.UserInfo{
		Username: "alice", Groups: []string{"sre", "system:authenticated"},
	}
	return nil
}

// run carries out a command line on the fake.
func (f fakeCluster) run(t *testing.T, stdin string, args ...string) answer {
	t.Helper()
	a, finish := testApp(t, stdin)
	c := f.connect(t)
	a.connect = func() (*cluster, error) { return c, nil }
	a.interactive = func() bool { return stdin != "" }
	return finish(a.run(t.Context(), args))
}

// baselineOf is an authorized Deployment in sync; change alters it.
func baselineOf(name string, change ...func(*v1alpha1.Baseline)) *v1alpha1.Baseline {
	b := &v1alpha1.Baseline{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: specguard.BaselineName("deployments", "apps", name), UID: "uid-" + "b"},
		Spec: v1alpha1.BaselineSpec{
			Target: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			Authorized: &v1alpha1.AuthorizedState{
				Hash: "pl1:sha256:authorized", Number: 3, By: "system:serviceaccount:ci:deployer", AuthorizationTime: before(2 * time.Hour), Origin: v1alpha1.OriginCreated,
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

// drifted adds findings, each by its user and of its age.
func drifted(findings ...v1alpha1.Finding) func(*v1alpha1.Baseline) {
	return func(b *v1alpha1.Baseline) {
		b.Status.State = v1alpha1.StateDrifted
		b.Status.Observed.Hash = "pl1:sha256:drifted"
		b.Status.Findings = findings
		b.Status.FindingsTotal = int32(len(findings))
		b.Status.FirstSeenTime = &findings[0].FirstSeenTime
		b.Status.Severity = &v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Score: 71}
	}
}

func found(path, was, now, user string, age time.Duration) v1alpha1.Finding {
	f := v1alpha1.Finding{
		Path: path, Operation: v1alpha1.OperationChanged, Type: v1alpha1.DriftScale, Class: v1alpha1.ClassScale,
		Before: was, After: now, FirstSeenTime: before(age),
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

func state(s v1alpha1.DriftState) func(*v1alpha1.Baseline) {
	return func(b *v1alpha1.Baseline) { b.Status.State = s }
}

func revisionOf(t *testing.T, b *v1alpha1.Baseline, number int64, body string) *v1alpha1.BaselineRevision {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer encoder.Close()
	return &v1alpha1.BaselineRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: specguard.RevisionName(b.Name, number)},
		Spec: v1alpha1.BaselineRevisionSpec{
			BaselineName: b.Name, Number: number, Hash: "pl1:sha256:authorized", By: "ci", AuthorizationTime: before(time.Hour),
			Encoding: v1alpha1.BodyEncodingZstd, Body: encoder.EncodeAll([]byte(body), nil), Size: int64(len(body)),
		},
	}
}

// liveBody is a Deployment with this spec, as the server would write it.
func liveBody(t *testing.T, spec string) string {
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
