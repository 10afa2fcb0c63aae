// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// bases are the golden pages from which others differ in a part.
var bases = map[string]string{
	"activate": "policy", "activate-author": "policy", "approve": "release", "cancel-refused": "sent", "drift-filtered": "drift",
	"object-owner": "object", "object-quarantined": "object", "plan-operator": "sent", "promote": "release", "proxies-filtered": "proxies", "release-owner": "release",
	"new-policy-author": "new-policy", "remediate-write": "remediate", "whoami-session": "whoami",
}

// checkGolden compares a page with its golden file, or the difference from its base with that of the file.
func checkGolden(t *testing.T, name, body string) {
	t.Helper()
	if base, differs := bases[name]; differs {
		golden.CheckDifference(t, base+".html", filepath.Join("testdata", name+".diff"), body)
		return
	}
	golden.Check(t, filepath.Join("testdata", name+".html"), body)
}

func TestEachPageShowsTheShop(t *testing.T) {
	b := open(t, shop(t), alice())
	names := slices.SortedFunc(maps.Keys(targets), func(x, y string) int {
		return cmp.Or(cmp.Compare(bases[x], bases[y]), cmp.Compare(x, y)) // whole pages first
	})
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			w := b.get(targets[name])
			if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
				t.Errorf("%d %s", w.Code, w.Header())
			}
			checkGolden(t, name, w.Body.String())
		})
	}
	if b.log.Len() > 0 {
		t.Errorf("the log says %s", b.log.String())
	}
}

func TestARequestForNoPageIsRefused(t *testing.T) {
	b := open(t, shop(t), alice())
	for name, tc := range map[string]struct {
		target string
		status int
		words  string
	}{
		"evidence of no plan":         {"/evidence/plans/shop/none", 404, "no plan, and no good record of a plan"},
		"evidence of no release":      {"/evidence/releases/shop/none", 404, "there is no good record of this release"},
		"a proxy that is none":        {"/proxies/shop/plain-0", 404, "no replica of the discovery server knows a proxy of this pod"},
		"an object that is none":      {"/objects/shop/deployments.apps.none", 404, "no Baseline has this id or name"},
		"a plan of another namespace": {"/plans/bank/eventful", 404, "no RemediationPlan has this id or name"},
		"a name that leads upwards":   {"/plans/shop/%2E%2E%2Fpods", 404, "no RemediationPlan can have this name"},
		"a namespace that is no name": {"/drift?namespace=a%2Fb", 400, "is no name of a namespace"},
		"a query that the page lacks": {"/drift?stat=Drifted", 400, "the page takes no query &#34;stat&#34;"},
		"a page that is none":         {"/none", 404, ""},
		"a folder of the assets":      {"/assets/none.css", 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if w := b.get(tc.target); w.Code != tc.status || !strings.Contains(w.Body.String(), tc.words) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/drift", nil))
	if w.Code == http.StatusOK {
		t.Errorf("a page answers to POST: %d", w.Code)
	}
}

// withholds has the API server refuse to list some kinds.
func withholds(f clitest.Cluster, lists ...client.ObjectList) clitest.Cluster {
	f.Hooks.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		for _, withheld := range lists {
			if reflect.TypeOf(list) == reflect.TypeOf(withheld) {
				return apierrors.NewForbidden(schema.GroupResource{Group: "plumbline.dev", Resource: "things"}, "", errors.New("no"))
			}
		}
		return c.List(ctx, list, opts...)
	}
	return f
}

// An empty table would say that there is no such object.
func TestWhatCannotBeReadIsSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		withheld      client.ObjectList
		target        string
		status        int
		words, denies string
	}{
		"objects":                       {&v1alpha1.BaselineList{}, "/", 403, "you may not list Baseline in the whole cluster: the ClusterRole plumbline-view has this right", "guarded:"},
		"objects of a namespace":        {&v1alpha1.BaselineList{}, "/drift?namespace=shop", 403, "you may not list Baseline in namespace shop", "No object differs"},
		"plans of the fleet":            {&v1alpha1.RemediationPlanList{}, "/", 200, "No RemediationPlan is shown: you may not list RemediationPlan in the whole cluster", "No plan and no release"},
		"halts of the fleet":            {&v1alpha1.RemediationLedgerList{}, "/", 200, "Not known: you may not list RemediationLedger in the whole cluster", "halted nowhere"},
		"Environments of the fleet":     {&v1alpha1.EnvironmentList{}, "/", 200, "Without a known Environment", "Environment production ("},
		"policies behind drift":         {&v1alpha1.RemediationPolicyList{}, "/drift", 200, "The decisions of the policies are unknown: you may not list RemediationPolicy", "no policy selects it"},
		"policies behind an object":     {&v1alpha1.RemediationPolicyList{}, "/objects/shop/deployments.apps.web", 200, "No policy was asked.", "no policy selects it"},
		"plans":                         {&v1alpha1.RemediationPlanList{}, "/plans", 403, "you may not list RemediationPlan in the whole cluster", "There is no plan"},
		"policies":                      {&v1alpha1.RemediationPolicyList{}, "/policies", 403, "you may not list RemediationPolicy in the whole cluster: the ClusterRole plumbline-view has this right", "There is no policy"},
		"assessments of the timeline":   {&v1alpha1.EffectivenessAssessmentList{}, "/objects/shop/deployments.apps.web", 200, "No EffectivenessAssessment is shown: you may not list", ""},
		"releases beside proxies":       {&v1alpha1.ABReleaseList{}, "/proxies", 200, "No ABRelease is shown: you may not list ABRelease in the whole cluster", "There is no release"},
		"pods of proxies":               {&corev1.PodList{}, "/proxies", 200, "No proxy is shown: you may not list Pod in namespace plumbline-system", "There is no proxy"},
		"pods of a proxy":               {&corev1.PodList{}, "/proxies/shop/front-1", 403, "you may not list Pod in namespace plumbline-system", ""},
		"the executor":                  {&corev1.PodList{}, "/evidence", 403, "you may not list Pod in namespace plumbline-system", "Whole"},
		"ledgers behind evidence":       {&v1alpha1.RemediationLedgerList{}, "/evidence/plans/shop/done", 403, "you may not list RemediationLedger in the whole cluster", "Whole"},
		"what the gates of a plan need": {&v1alpha1.RemediationPlanList{}, "/policies/production", 200, "The gates are not known: ", "Nothing has drifted"},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, withholds(shop(t), tc.withheld), alice()).get(tc.target)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.words) {
				t.Errorf("%d, want %d and %q in %s", w.Code, tc.status, tc.words, w.Body)
			}
			if tc.denies != "" && strings.Contains(w.Body.String(), tc.denies) {
				t.Errorf("%q is said of what was not read", tc.denies)
			}
		})
	}
}

// The API server lets a caller without the right to forward ports, or to reach pods, read all else.
func TestAProcessThatIsNotReachedIsNamed(t *testing.T) {
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "xds-b", errors.New("no"))
	for name, tc := range map[string]struct {
		change func(f *clitest.Cluster, mesh *clitest.Mesh)
		target string
		status int
		words  []string
	}{
		"no right to forward ports": {
			func(_ *clitest.Cluster, mesh *clitest.Mesh) {
				for name, replica := range mesh.Replicas {
					replica.Away = &portforward.DeniedError{Target: portforward.Target{Namespace: "plumbline-system", Pod: name}, Cause: denied}
				}
			}, "/proxies", 200, []string{"you may not create pods/portforward in namespace plumbline-system", "5 Unknown", "shop/web"},
		},
		"no right to forward the port of one": {
			func(_ *clitest.Cluster, mesh *clitest.Mesh) {
				for name, replica := range mesh.Replicas {
					replica.Away = &portforward.DeniedError{Target: portforward.Target{Namespace: "plumbline-system", Pod: name}, Cause: denied}
				}
			}, "/proxies/shop/front-1", 403, []string{"you may not create pods/portforward in namespace plumbline-system"},
		},
		"no right to forward the port of the leader": {
			func(_ *clitest.Cluster, mesh *clitest.Mesh) {
				mesh.Replicas["xds-a"].Away = &portforward.DeniedError{Target: portforward.Target{Namespace: "plumbline-system", Pod: "xds-a"}, Cause: denied}
			}, "/releases/shop/web", 200, []string{"No chart is drawn: you may not create pods/portforward in namespace plumbline-system", "Gates of the run"},
		},
		"a leader that is away": {
			func(_ *clitest.Cluster, mesh *clitest.Mesh) {
				mesh.Replicas["xds-a"].Away = errors.New("no route to host")
			}, "/releases/shop/web", 200, []string{"No chart is drawn: 1 of 2 replicas of the discovery server did not answer: xds-a", "Gates of the run"},
		},
		"no leader": {
			func(_ *clitest.Cluster, mesh *clitest.Mesh) { mesh.Replicas["xds-a"].Hours = nil },
			"/releases/shop/web", 200, []string{"No chart is drawn: no replica of the discovery server leads now"},
		},
		"a replica that is away": {
			func(_ *clitest.Cluster, mesh *clitest.Mesh) {
				mesh.Replicas["xds-b"].Away = errors.New("no route to host")
			},
			"/proxies", 200, []string{"1 of 2 replicas of the discovery server did not answer: xds-b", "3 Unknown"},
		},
		"no right to reach pods": {
			func(f *clitest.Cluster, _ *clitest.Mesh) {
				f.Proxy = func(context.Context, portforward.Target, string, map[string]string) ([]byte, error) {
					return nil, denied
				}
			}, "/evidence", 403, []string{"you may not get pods/proxy in namespace plumbline-system"},
		},
		"an executor that serves no records": {
			func(f *clitest.Cluster, _ *clitest.Mesh) {
				f.Proxy = func(context.Context, portforward.Target, string, map[string]string) ([]byte, error) {
					return nil, apierrors.NewNotFound(schema.GroupResource{}, "evidence")
				}
			}, "/evidence/plans/shop/done", 503, []string{"pod executor-0 does not serve its records"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			mesh := clitest.MeshOf()
			f := shopWith(t, clitest.PackedArchive(t), mesh)
			tc.change(&f, mesh)
			w := open(t, f, alice()).get(tc.target)
			for _, words := range tc.words {
				if w.Code != tc.status || !strings.Contains(w.Body.String(), words) {
					t.Errorf("%d, want %d and %q in %s", w.Code, tc.status, words, w.Body)
				}
			}
			if strings.Contains(w.Body.String(), "no route to host") {
				t.Errorf("the page tells a text of the log: %s", w.Body)
			}
		})
	}
}

// The role of the chart for viewers has no right to revisions.
func TestAnObjectWithoutRevisionsShowsWhatTheLastCheckHasFound(t *testing.T) {
	f := shop(t)
	f.Hooks.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
		if _, is := object.(*v1alpha1.BaselineRevision); is {
			return apierrors.NewForbidden(schema.GroupResource{Group: "plumbline.dev", Resource: "baselinerevisions"}, key.Name, errors.New("no"))
		}
		return c.Get(ctx, key, object, opts...)
	}
	w := open(t, f, alice()).get("/objects/shop/deployments.apps.web")
	for _, want := range []string{
		"No BaselineRevision is shown: you may not get BaselineRevision in namespace shop", "No live object is shown: ", "Differences that the last check has found", "/spec/replicas",
		"revision 3, by system:serviceaccount:ci:deployer",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q is not in %s", want, w.Body)
		}
	}
}

// script would run in a page that does not escape it; the rest of the text hides and reorders.
const script = `</td><script>alert(1)</script>"'><img src=x onerror=alert(1)>` + clitest.Hostile

// taint replaces each text of an object that the API server lets people choose.
func taint(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			taint(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if v.Type() == reflect.TypeFor[metav1.ObjectMeta]() || v.Type() == reflect.TypeFor[metav1.Time]() || name == "APIVersion" || name == "BaselineName" || name == "EnvironmentName" || name == "Digest" {
				continue
			}
			taint(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			taint(v.Index(i))
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() && v.String() != "" {
			v.SetString(v.String() + script)
		}
	default:
	}
}

// hostileProcesses are an archive and a mesh with hostile text in each place that takes text. A record takes no
// control characters.
func hostileProcesses(t *testing.T) (*clitest.Archive, *clitest.Mesh) {
	t.Helper()
	const hostile = `</td><script>alert(1)</script>"'><img src=x onerror=alert(1)>` + "root\u202egnp.exe\u200b"
	archive := clitest.PackedArchive(t)
	record := clitest.StepOf("done", 1, "1002", clitest.Now)
	record.Requester, record.Approver, record.InitiatedBy, record.Occurrence = hostile, hostile, hostile, 1
	archive.Append(record)
	archive.PackRelease(func(r *evidence.Record) { r.InitiatedBy = hostile })
	mesh := clitest.MeshOf()
	for _, replica := range mesh.Replicas {
		for i := range replica.Proxies {
			p := &replica.Proxies[i]
			p.Node, p.Unserved = script, []string{script}
			for j := range p.Resources {
				p.Resources[j].Name, p.Resources[j].Why = script, script
			}
		}
	}
	return archive, mesh
}

func TestHostileTextIsShownAsText(t *testing.T) {
	archive, mesh := hostileProcesses(t)
	f := shopWith(t, archive, mesh)
	for _, o := range f.Objects {
		switch o.(type) {
		case *v1alpha1.Baseline, *v1alpha1.RemediationPlan, *v1alpha1.RemediationLedger, *v1alpha1.ABRelease, *v1alpha1.EffectivenessAssessment:
			taint(reflect.ValueOf(o))
		}
	}
	b := open(t, f, authenticationv1.UserInfo{Username: script, Groups: []string{script}})
	tainted := 0
	for name, target := range targets {
		w := b.get(target)
		body := w.Body.String()
		tainted += strings.Count(body, "alert(1)")
		for _, forbidden := range []string{"<script>", "<img", "onerror=alert(1)>"} {
			if strings.Contains(body, forbidden) {
				t.Errorf("%s: %q is in the page", name, forbidden)
			}
		}
		if i := strings.IndexFunc(body, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s: %q hides or reorders text", name, body[i:min(i+4, len(body))])
		}
		checkStructure(t, name, body)
	}
	if tainted < 50 {
		t.Errorf("only %d hostile texts were shown", tainted)
	}
}

func TestEachPageIsProtected(t *testing.T) {
	b := open(t, shop(t), alice())
	protected := httpapi.Protect(b, "127.0.0.1:8090")
	seen := 0
	for _, pattern := range b.Routes() {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.NewReplacer("{$}", "", "{namespace}", "shop", "{name}", "web").Replace(path)
		for host, want := range map[string]bool{"127.0.0.1:8090": true, "evil.example": false} {
			r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			protected.ServeHTTP(w, r)
			if (w.Code != http.StatusMisdirectedRequest) != want {
				t.Errorf("%s at %s: %d", path, host, w.Code)
			}
			if policy := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self';") {
				t.Errorf("%s at %s: the policy is %q", path, host, policy)
			}
			seen++
		}
	}
	if seen < 2*len(table()) {
		t.Errorf("only %d requests were sent", seen)
	}
}

// A browser that has the page is sent none, until something but the time of the reads is new.
func TestAPageIsSentWhenSomethingIsNew(t *testing.T) {
	f := shop(t)
	b := open(t, f, alice())
	now := clitest.Now
	cluster := b.cluster.Cluster.(asked) //nolint:forcetypeassert // open has it so
	cluster.now = func() time.Time { return now }
	b.cluster.Cluster = cluster
	conditional := func(tag string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/plans?phase=Sealing", nil)
		r.Header.Set("If-None-Match", tag)
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		return w
	}
	tag := b.get("/plans?phase=Sealing").Header().Get("ETag")
	now = now.Add(time.Second)
	if w := conditional(tag); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("a second later: %d %s", w.Code, w.Body)
	}
	now = now.Add(time.Hour)
	if w := conditional(tag); w.Code != http.StatusOK || w.Header().Get("ETag") == tag {
		t.Errorf("with other ages: %d %s", w.Code, w.Header().Get("ETag"))
	}
}

// firstLoad is how many bytes the first page may have with all that it loads.
const firstLoad = 200_000

func TestTheFirstLoadIsSmall(t *testing.T) {
	assets := 0
	err := fs.WalkDir(view.Assets, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(view.Assets, path)
		assets += len(raw)
		return err
	})
	clitest.Must(t, err)
	f := shop(t)
	for i := range 500 {
		f.Objects = append(f.Objects, clitest.BaselineOf(fmt.Sprintf("calm-%d", i)))
	}
	b := open(t, f, alice())
	for name, target := range targets {
		if size := assets + b.get(target).Body.Len(); size > firstLoad {
			t.Errorf("%s: the first load has %d bytes", name, size)
		}
	}
	if assets == 0 {
		t.Error("no asset was counted")
	}
}

// The golden pages of the reader have barred buttons; these are of a user who may press them, and of one who was
// refused.
func TestFormsAreShownToThoseWhoMay(t *testing.T) {
	for name, send := range map[string]func(*browser) *httptest.ResponseRecorder{
		"plan-operator": func(b *browser) *httptest.ResponseRecorder { return b.get("/plans/shop/later") },
		"object-quarantined": func(b *browser) *httptest.ResponseRecorder {
			return b.get("/objects/shop/deployments.apps.away")
		},
		"object-owner":    func(b *browser) *httptest.ResponseRecorder { return b.get("/objects/shop/deployments.apps.web") },
		"release-owner":   func(b *browser) *httptest.ResponseRecorder { return b.get("/releases/shop/web") },
		"activate-author": func(b *browser) *httptest.ResponseRecorder { return b.get("/policies/production/activate") },
		"cancel-refused": func(b *browser) *httptest.ResponseRecorder {
			return b.post("/plans/shop/later/cancel", url.Values{"reason": {strings.Repeat("x", 257)}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, workshop(t), alice())
			b.cluster.Allows = allowsAll
			body := send(b).Body.String()
			checkStructure(t, name, body)
			checkGolden(t, name, body)
		})
	}
}

func TestThePreviewShowsTheWriteOfARemediation(t *testing.T) {
	b := open(t, clitest.Shop(t, clitest.ActiveBy("alice")), alice())
	b.cluster.Allows = allowsAll
	body := b.get("/objects/shop/deployments.apps.web/remediate?policy=production").Body.String()
	checkStructure(t, "preview", body)
	checkGolden(t, "remediate-write", body)
	if !strings.Contains(body, "The write would lead to the authorized state.") || buttons(t, body)["remediate"] != "" {
		t.Errorf("no write is shown: %s", body)
	}
}
