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
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/proxies"
	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

// inMemory is a cluster in memory, with a caller.
type inMemory struct {
	client.WithWatch
	user    authenticationv1.UserInfo
	targets clitest.Targets
	// proxy and forward answer for the processes.
	proxy   records.Proxy
	forward proxies.Forward
}

// Proxy answers as the executor does.
func (c *inMemory) Proxy(ctx context.Context, target portforward.Target, path string, query map[string]string) ([]byte, error) {
	return c.proxy(ctx, target, path, query)
}

// System finds the namespace as the door of the plugin does.
func (c *inMemory) System(ctx context.Context) (string, error) {
	return actions.FindSystemOfLedgers(ctx, c)
}

// Forward answers as the discovery server does.
func (c *inMemory) Forward(_ context.Context, target portforward.Target) *http.Client {
	return c.forward(target)
}

var (
	packOnce sync.Once
	packed   *clitest.Archive
)

// archive has the records of a plan that is gone. It is in memory, and no test changes it.
func archive(t *testing.T) *clitest.Archive {
	packOnce.Do(func() { packed = clitest.PackedArchive(t) })
	return packed
}

func (c *inMemory) Whoami(context.Context) (authenticationv1.UserInfo, error) { return c.user, nil }

func (c *inMemory) DryRuns() exec.Targets { return c.targets }

func (c *inMemory) Now() time.Time { return time.Date(2026, 3, 1, 12, 5, 0, 0, time.UTC) }

var kinds = fakeclient.KindsOf(v1alpha1.AddToScheme, corev1.AddToScheme)

// newCluster makes a cluster of objects; hooks come before the answers.
func newCluster(t *testing.T, hooks interceptor.Funcs, objects ...client.Object) *inMemory {
	t.Helper()
	return &inMemory{
		WithWatch: fakeclient.NewBuilder(kinds()).WithObjects(objects...).WithInterceptorFuncs(hooks).
			WithStatusSubresource(&v1alpha1.Baseline{}, &v1alpha1.RemediationPlan{}, &v1alpha1.RemediationRequest{}, &v1alpha1.RemediationPolicy{}, &v1alpha1.ABRelease{}).Build(),
		user:  authenticationv1.UserInfo{Username: "alice", Groups: []string{"sre", "dev"}},
		proxy: archive(t).Proxy(), forward: clitest.MeshOf().Forward(t),
	}
}

// goldens reads the objects of the golden files of package wire. They are parsed once, and no test changes them.
var goldens = sync.OnceValues(func() (objects []client.Object, err error) {
	for name, object := range map[string]client.Object{
		"policy": &v1alpha1.RemediationPolicy{}, "plan": &v1alpha1.RemediationPlan{}, "release": &v1alpha1.ABRelease{},
		"strategy": &v1alpha1.RolloutStrategy{}, "baseline": &v1alpha1.Baseline{}, "environment": &v1alpha1.Environment{},
		"guard": &v1alpha1.ClusterSpecGuard{}, "assessment": &v1alpha1.EffectivenessAssessment{},
	} {
		raw, err := os.ReadFile(filepath.Join("wire/testdata", name+".yaml"))
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(raw, object); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
})

// shop has one object of each sort: those of the golden files of package wire.
func shop(t *testing.T) []client.Object {
	t.Helper()
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "d0000000-0000-4000-8000-000000000001", Labels: map[string]string{"stage": "production"}}},
		&v1alpha1.SpecGuard{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "a0000000-0000-4000-8000-000000000002"}},
	}
	read, err := goldens()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range read {
		objects = append(objects, object.DeepCopyObject().(client.Object))
	}
	objects = append(objects, archive(t).Served()...)
	objects = append(objects, clitest.MeshOf().Objects()...)
	ended := &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ended", UID: "2d6f9c3e-0000-4000-8000-000000000002"}}
	ended.Spec.Plan.EnvironmentName, ended.Status.Phase = "staging", v1alpha1.PlanSuperseded
	return append(objects, ended)
}

// shopAtWork is the shop, with plans of which something can be asked.
func shopAtWork(t *testing.T) []client.Object {
	t.Helper()
	waiting := &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "production-4c1f9a0d2b", UID: "2d6f9c3e-0000-4000-8000-000000000003"}}
	waiting.Spec.Plan.Trigger, waiting.Spec.Plan.Strategy = v1alpha1.TriggerManual, v1alpha1.StrategyRolling
	waiting.Status.Phase, waiting.Status.DeferralReason = v1alpha1.PlanDeferred, "the window is closed"
	paused := &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "paused", UID: "2d6f9c3e-0000-4000-8000-000000000004"}}
	paused.Spec.Plan = waiting.Spec.Plan
	paused.Spec.Control = v1alpha1.PlanControl{Verb: v1alpha1.PlanPause, RequestedBy: "bob"}
	paused.Status.Phase = v1alpha1.PlanPaused
	away := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployment-away", UID: "9f6a1b1c-0000-4000-8000-000000000009"}}
	away.Status.State, away.Status.Quarantine = v1alpha1.StateDrifted, &v1alpha1.Quarantine{Token: "plan-0", By: "RemediationPlan/p", StartTime: metav1.NewTime(clitest.Now)}
	return append(shop(t), waiting, paused, away)
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
	a.API = New(c, "v0.0.0-test", slog.New(slog.NewTextHandler(&a.log, nil)))
	return a
}

// get sends a GET with headers, each with its value behind it.
func (a *answers) get(target string, headers ...string) *httptest.ResponseRecorder {
	a.t.Helper()
	return a.send(http.MethodGet, target, "", headers...)
}

// send sends a request. A body, or its absence, is JSON unless a header says otherwise.
func (a *answers) send(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	a.t.Helper()
	r := httptest.NewRequestWithContext(a.t.Context(), method, target, strings.NewReader(body))
	if method != http.MethodGet {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w
}

// sendExample sends the example of an operation.
func (a *answers) sendExample(o *operation) *httptest.ResponseRecorder {
	a.t.Helper()
	var headers []string
	for name, value := range o.headers {
		headers = append(headers, name, value)
	}
	return a.send(o.method, o.example, o.body, headers...)
}

// want demands a status, and reads the answer.
func want[W any](a *answers, w *httptest.ResponseRecorder, status int) (body W) {
	a.t.Helper()
	if w.Code != status {
		a.t.Fatalf("%d %s, want %d", w.Code, w.Body, status)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		a.t.Fatal(err)
	}
	return body
}

// wantProblem demands a problem of a type; a location that is not empty is that of its one fault.
func (a *answers) wantProblem(w *httptest.ResponseRecorder, t wire.ProblemType, location string) wire.Problem {
	a.t.Helper()
	p := a.problem(w)
	if p.Type != wire.ProblemBase+string(t) || location != "" && (len(p.Errors) != 1 || p.Errors[0].Location != location) {
		a.t.Errorf("%s %s, want %s at %q", w.Body, p.Type, t, location)
	}
	return p
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
