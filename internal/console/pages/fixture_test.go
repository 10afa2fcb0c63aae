// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
)

// asked is the cluster in memory, with a caller.
type asked struct {
	*invocation.Cluster
	user authenticationv1.UserInfo
	now  func() time.Time
}

func (a asked) Whoami(context.Context) (authenticationv1.UserInfo, error) { return a.user, nil }

func (a asked) DryRuns() exec.Targets { return a.Targets }

func (a asked) Proxy(ctx context.Context, target portforward.Target, path string, query map[string]string) ([]byte, error) {
	return a.Cluster.Proxy(ctx, target, path, query)
}

func (a asked) System(ctx context.Context) (string, error) {
	return actions.FindSystemOfLedgers(ctx, a)
}

func (a asked) Forward(_ context.Context, target portforward.Target) *http.Client {
	return a.Cluster.Forward(target)
}

func (a asked) Now() time.Time { return a.now() }

// alice may read all. A test gives her other rights.
func alice() authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: "alice", Groups: []string{"sre", "system:authenticated"}}
}

func allowsReads(_ context.Context, right *authorizationv1.ResourceAttributes) (bool, error) {
	return right.Verb == "list" || right.Verb == "get", nil
}

func allowsAll(context.Context, *authorizationv1.ResourceAttributes) (bool, error) { return true, nil }

// browser sends requests to pages about a cluster in memory.
type browser struct {
	*Pages
	client.Client
	t   *testing.T
	log bytes.Buffer
}

func open(t *testing.T, f clitest.Cluster, user authenticationv1.UserInfo) *browser {
	t.Helper()
	c := f.Connect(t)
	b := &browser{t: t, Client: c}
	cluster, log := asked{c, user, func() time.Time { return clitest.Now }}, slog.New(slog.NewTextHandler(&b.log, nil))
	b.Pages = New(Cluster{Cluster: cluster, Mapper: c.Mapper, Live: c.Live, Allows: allowsReads}, httpapi.New(cluster, "test", log), log)
	return b
}

func (b *browser) get(target string) *httptest.ResponseRecorder {
	b.t.Helper()
	w := httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequestWithContext(b.t.Context(), http.MethodGet, target, nil))
	return w
}

// post sends a form.
func (b *browser) post(target string, values url.Values) *httptest.ResponseRecorder {
	b.t.Helper()
	return b.send(formOf(b.t, target, values))
}

func (b *browser) send(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

func formOf(t *testing.T, target string, values url.Values) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// shop has something to show on each page: a drifted object with a policy, plans in each phase of their
// life, halts, and the release and the assessment of the golden files of the REST API.
// Its executor serves the records of a plan that is gone and of the release, and its discovery server has a mesh.
func shop(t *testing.T) clitest.Cluster {
	t.Helper()
	archive := clitest.PackedArchive(t)
	archive.PackRelease()
	return shopWith(t, archive, clitest.MeshOf())
}

func shopWith(t *testing.T, archive *clitest.Archive, mesh *clitest.Mesh) clitest.Cluster {
	t.Helper()
	f := clitest.Shop(t, clitest.ActiveBy("alice"))
	f.Objects = append(f.Objects,
		clitest.PlanOf("eventful", clitest.Eventful), clitest.PlanOf("later", clitest.Deferred("the window is closed", new(clitest.Before(-time.Hour)))),
		clitest.LedgerFor("production", actions.ScopeEnvironment, func(l *v1alpha1.RemediationLedger) {
			l.Spec.Halt = &v1alpha1.LedgerHalt{RequestedBy: "bob", Reason: "INC-9"}
			l.Status.Sequence = 4
		}),
		clitest.BaselineOf("fought", clitest.Drifted(clitest.Found("/spec/paused", "", "true", "", time.Minute)), func(b *v1alpha1.Baseline) {
			b.Status.Contention = &v1alpha1.Contention{StartTime: clitest.Before(4 * time.Minute), With: []string{"bob", "ci"}}
			b.Status.FindingsTotal = 70
		}),
		clitest.BaselineOf("gone", clitest.InState(v1alpha1.StateMissing)),
		clitest.BaselineOf("stale", func(b *v1alpha1.Baseline) {
			b.Status.LastCheckTime, b.Status.NextCheckTime = new(clitest.Before(3*time.Hour)), new(clitest.Before(2*time.Hour))
		}),
		clitest.BaselineOf("new", clitest.InState(""), func(b *v1alpha1.Baseline) { b.Spec.Authorized = nil }),
		ofWire(t, "release", &v1alpha1.ABRelease{}), ofWire(t, "assessment", &v1alpha1.EffectivenessAssessment{}),
	)
	f.Objects = append(append(f.Objects, archive.Served()...), mesh.Objects()...)
	f.Proxy, f.Forward = archive.Proxy(), mesh.Forward(t)
	return f
}

// ofWire reads an object of the golden files of the REST API.
func ofWire[T client.Object](t *testing.T, name string, object T) T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../../httpapi/wire/testdata", name+".yaml"))
	clitest.Must(t, err)
	clitest.Must(t, yaml.UnmarshalStrict(raw, object))
	return object
}

// targets is a request for each page, in the names of the golden files.
var targets = map[string]string{
	"fleet": "/", "drift": "/drift", "drift-filtered": "/drift?namespace=shop&severity=High&actor=bob&state=Drifted", "object": "/objects/shop/deployments.apps.web",
	"object-missing": "/objects/shop/deployments.apps.gone", "plans": "/plans", "plan": "/plans/shop/eventful", "policies": "/policies", "policy": "/policies/production", "new-policy": "/new-policy",
	"releases": "/releases", "release": "/releases/shop/web", "assessments": "/assessments", "assessment": "/assessments/shop/production-e82871e6b1-0", "whoami": "/whoami?namespace=shop",
	"remediate": "/objects/shop/deployments.apps.web/remediate?policy=production", "activate": "/policies/production/activate", "approve": "/releases/shop/web/approve",
	"promote": "/releases/shop/web/promote?variation=B", "sent": "/plans/shop/later?sent=pause", "edit": "/policies/production/edit",
	"evidence": "/evidence", "evidence-plan": "/evidence/plans/shop/done", "evidence-release": "/evidence/releases/shop/web",
	"ledger": "/ledgers/plumbline-system/production", "proxies": "/proxies", "proxies-filtered": "/proxies?namespace=shop&stage=Refused", "proxy": "/proxies/shop/front-1",
}
