// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// inMemory is a cluster in memory, with a caller.
type inMemory struct {
	client.Client
	user authenticationv1.UserInfo
}

func (c *inMemory) Whoami(context.Context) (authenticationv1.UserInfo, error) { return c.user, nil }

// newCluster makes a cluster of objects; hooks come before the answers.
func newCluster(t *testing.T, hooks interceptor.Funcs, objects ...client.Object) *inMemory {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return &inMemory{
		fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(hooks).Build(),
		authenticationv1.UserInfo{Username: "alice", Groups: []string{"sre"}},
	}
}

// shop has one object of each sort: those of the golden files of package wire.
func shop(t *testing.T) []client.Object {
	t.Helper()
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "d0000000-0000-4000-8000-000000000001", Labels: map[string]string{"stage": "production"}}},
		&v1alpha1.SpecGuard{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "a0000000-0000-4000-8000-000000000002"}},
	}
	for name, object := range map[string]client.Object{
		"policy": &v1alpha1.RemediationPolicy{}, "plan": &v1alpha1.RemediationPlan{}, "release": &v1alpha1.ABRelease{},
		"strategy": &v1alpha1.RolloutStrategy{}, "baseline": &v1alpha1.Baseline{}, "environment": &v1alpha1.Environment{},
		"guard": &v1alpha1.ClusterSpecGuard{}, "assessment": &v1alpha1.EffectivenessAssessment{},
	} {
		raw, err := os.ReadFile(filepath.Join("wire/testdata", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(raw, object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	ended := &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ended", UID: "2d6f9c3e-0000-4000-8000-000000000002"}}
	ended.Spec.Plan.EnvironmentName, ended.Status.Phase = "staging", v1alpha1.PlanSuperseded
	return append(objects, ended)
}

// answers sends requests to the API about a cluster.
type answers struct {
	*API
	t *testing.T
	// log has the lines that the API logs.
	log bytes.Buffer
}

func newAnswers(t *testing.T, c Cluster) *answers {
	t.Helper()
	a := &answers{t: t}
	api, err := New(c, "v0.0.0-test", slog.New(slog.NewTextHandler(&a.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	a.API = api
	return a
}

// get sends a GET with headers, each with its value behind it.
func (a *answers) get(target string, headers ...string) *httptest.ResponseRecorder {
	a.t.Helper()
	r := httptest.NewRequestWithContext(a.t.Context(), http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w
}

// problem demands an answer that is a problem.
func (a *answers) problem(w *httptest.ResponseRecorder) wire.Problem {
	a.t.Helper()
	var p wire.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		a.t.Fatalf("%v in %s", err, w.Body)
	}
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" || p.Status != w.Code {
		a.t.Errorf("%d %s is no problem: %s", w.Code, got, w.Body)
	}
	return p
}
