// SPDX-License-Identifier: Apache-2.0

package proxies

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// replica is what one has; away is why it does not answer.
type replica struct {
	proxies []serve.Connected
	away    error
}

// Page implements proxieshttp.Proxies; all is one page.
func (r *replica) Page(_ context.Context, q serve.Query) (page []serve.Connected, more bool) {
	for _, c := range r.proxies {
		if !q.Keep(c.Proxy) {
			continue
		}
		resources := c.Resources
		c.Resources, c.Counts = nil, map[ads.Stage]int{}
		for _, s := range resources {
			if q.Of(ads.Key{Type: s.Type, Name: s.Name}) {
				c.Counts[s.Stage]++
				if q.Details {
					c.Resources = append(c.Resources, s)
				}
			}
		}
		page = append(page, c)
	}
	return page, false
}

// discovery is a discovery server of several replicas, by the names of their pods, and
// the pods of a cluster.
type discovery struct {
	replicas map[string]*replica
	pods     []client.Object
	hooks    interceptor.Funcs
}

func (d discovery) run(t *testing.T, args ...string) clitest.Answer {
	t.Helper()
	f := clitest.Cluster{Objects: d.pods, Hooks: d.hooks}
	for name := range d.replicas {
		f.Objects = append(f.Objects, meshPod("plumbline-system", name, map[string]string{"app.kubernetes.io/name": "plumbline", "app.kubernetes.io/component": "xds"}))
	}
	c := f.Connect(t)
	c.Forward = d.forward(t)
	inv, finish := clitest.NewInvocation(t, "")
	inv.Connect = func() (*invocation.Cluster, error) { return c, nil }
	return finish(clitest.Run(t, inv, verbs, args))
}

// answers is a transport.
type answers func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// forward answers with the real handler.
func (d discovery) forward(t *testing.T) func(portforward.Target) *http.Client {
	return func(target portforward.Target) *http.Client {
		return &http.Client{Transport: answers(func(r *http.Request) (*http.Response, error) {
			of := d.replicas[target.Pod]
			if target.Namespace != "plumbline-system" || target.Port != proxieshttp.Port || of == nil {
				t.Errorf("%+v was asked", target)
				return nil, errors.New("there is no such pod")
			}
			if of.away != nil {
				return nil, of.away
			}
			h := proxieshttp.New(target.Pod, func() time.Time { return clitest.Now })
			h.Show(of)
			w := httptest.NewRecorder()
			h.Routes().ServeHTTP(w, r)
			return w.Result(), nil
		})}
	}
}

func meshPod(namespace, name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{ServiceAccountName: "front"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func injectedPod(namespace, name string) *corev1.Pod {
	return meshPod(namespace, name, map[string]string{inject.LabelProxy: string(inject.Redirect)})
}

func connected(namespace, pod string, resources ...ads.State) serve.Connected {
	return serve.Connected{
		Proxy: identity.Proxy{Namespace: namespace, Pod: pod, ServiceAccount: "front", Expires: clitest.Now.Add(time.Minute)}, Node: namespace + "/" + pod,
		Version: [3]uint64{1, 40, 0}, Since: clitest.Now.Add(-time.Hour), Resources: resources,
	}
}

func atStage(kind ads.Type, name string, stage ads.Stage, why string) ads.State {
	return ads.State{
		Type: kind, Name: name, Stage: stage, Why: why, Since: clitest.Now.Add(-90 * time.Second),
		Has: ads.Version{Sequence: 1, Hash: "aa"}, Wants: ads.Version{Sequence: 2, Hash: "bb"},
	}
}

// meshOf two replicas: a proxy that has everything, one that refuses a route, one that
// reads nothing, one of another namespace, and a pod that nobody knows.
func meshOf() discovery {
	slow := connected("shop", "slow-0")
	slow.Blocked = true
	fine := atStage(ads.Cluster, "shop/web|80|", ads.Acknowledged, "")
	return discovery{
		replicas: map[string]*replica{
			"xds-a": {proxies: []serve.Connected{connected("bank", "pay-0", fine), connected("shop", "front-0", fine, atStage(ads.Route, "shop/cart|80", ads.Held, "endpoints of [shop/cart|80|] are not acknowledged"))}},
			"xds-b": {proxies: []serve.Connected{connected("shop", "front-1", fine, atStage(ads.Route, "shop/web|80", ads.Refused, "no such matcher")), slow}},
		},
		pods: []client.Object{
			injectedPod("shop", "front-0"), injectedPod("shop", "front-1"), injectedPod("shop", "slow-0"), injectedPod("shop", "lost-0"), injectedPod("bank", "pay-0"),
			meshPod("shop", "plain-0", nil),
		},
	}
}

func TestProxies_ListsThoseOfAllReplicasWorstFirst(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"of a namespace": {[]string{"proxies"}, `
POD       STAGE          ACKNOWLEDGED   ON-THE-WAY   HELD   REFUSED   CONNECTED
lost-0    NotConnected   <unknown>                                 
slow-0    Blocked        <unknown>                                 60m
front-1   Refused        1/2         0            0      1         60m
front-0   Held           1/2         0            1      0         60m

4 proxies: 1 NotConnected, 1 Blocked, 1 Refused, 1 Held
`},
		"of all, with more": {[]string{"proxies", "-A", "-o", "wide", "--no-headers"}, `
shop   lost-0    NotConnected   <unknown>                                                                front
shop   slow-0    Blocked        <unknown>               60m           xds-b   1.40.0   2026-03-01T12:01:00Z   shop/slow-0    front
shop   front-1   Refused        1/2         0   0   1   60m   0   0   xds-b   1.40.0   2026-03-01T12:01:00Z   shop/front-1   front
shop   front-0   Held           1/2         0   1   0   60m   0   0   xds-a   1.40.0   2026-03-01T12:01:00Z   shop/front-0   front
bank   pay-0     Acknowledged      1/1         0   0   0   60m   0   0   xds-a   1.40.0   2026-03-01T12:01:00Z   bank/pay-0     front
`},
		"in a stage": {[]string{"proxies", "-A", "--stage", "held", "--no-headers"}, `
shop   front-0   Held   1/2   0   1   0   60m
`},
		"that nobody knows": {[]string{"proxies", "--stage", "notconnected", "--no-headers"}, `
lost-0   NotConnected   <unknown>            
`},
		"of a service": {[]string{"proxies", "--service", "shop/cart", "--no-headers"}, `
slow-0    Blocked   <unknown>               60m
front-0   Held      0/1         0   1   0   60m
`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := meshOf().run(t, tc.args...)
			if diff := cmp.Diff(clitest.Answer{Code: 0, Stdout: squeezed(tc.want), Stderr: ""}, clitest.Answer{Code: got.Code, Stdout: squeezed(got.Stdout), Stderr: got.Stderr}); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, got.Stdout)
			}
		})
	}
}

// squeezed are the words of each line: the printer pads as it likes.
func squeezed(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

func TestProxies_ShowsWhatOneHasAndWhy(t *testing.T) {
	got := meshOf().run(t, "proxies", "pod/front-1")
	want := `Pod: shop/front-1
Stage: Refused
Replica: xds-b
Node: shop/front-1
Envoy: 1.40.0
Account: front
Connected: 2026-03-01T11:00:00Z (60m ago)
Token: until 2026-03-01T12:01:00Z

TYPE NAME STAGE HAS WANTS SINCE WHY
Cluster shop/web|80| Acknowledged 1.aa 2.bb 90s
Route shop/web|80 Refused 1.aa 2.bb 90s no such matcher`
	if diff := cmp.Diff(clitest.Answer{Code: 0, Stdout: want, Stderr: ""}, clitest.Answer{Code: got.Code, Stdout: squeezed(got.Stdout), Stderr: got.Stderr}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got = meshOf().run(t, "proxies", "front-1", "--stage=Refused", "-o", "json")
	var report listReport
	clitest.Must(t, json.Unmarshal([]byte(got.Stdout), &report))
	if len(report.Proxies) != 1 || len(report.Proxies[0].Resources) != 1 || report.Proxies[0].Resources[0].Why != "no such matcher" || report.Proxies[0].Replica != "xds-b" {
		t.Errorf("as JSON: %s", got.Stdout)
	}
}

func TestProxies_SaysWhyAPodIsNotConnected(t *testing.T) {
	d := meshOf()
	waits := injectedPod("shop", "waits-0")
	waits.Status.Phase = corev1.PodPending
	d.pods = append(d.pods, waits)
	for pod, want := range map[string]string{
		"lost-0":  "error: pod lost-0 has a proxy (mode redirect) that is NotConnected: no replica of the discovery server knows it. Its own log is in `kubectl logs lost-0 -c plumbline-proxy`\n",
		"plain-0": "error: pod plain-0 has no proxy: it was made without one (the label plumbline.dev/inject asks for it)\n",
		"waits-0": "error: pod waits-0 has a proxy (mode redirect), and does not run: its phase is Pending\n",
		"none":    "Error from server (NotFound): pods \"none\" not found\n",
	} {
		if diff := cmp.Diff(clitest.Answer{Code: 1, Stdout: "", Stderr: want}, d.run(t, "proxies", pod)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pod, diff)
		}
	}
}

func TestProxies_NamesTheReplicaThatDoesNotAnswer(t *testing.T) {
	d := meshOf()
	d.replicas["xds-b"].away = errors.New("no route to host")
	const silent = "error: 1 of 2 replicas of the discovery server did not answer, and the resources of their proxies are unknown: xds-b (reading proxies: no route to host)\n"
	got := d.run(t, "proxies", "--no-headers")
	want := "front-0 Held 1/2 0 1 0 60m\nfront-1 Unknown <unknown>\nlost-0 Unknown <unknown>\nslow-0 Unknown <unknown>"
	if diff := cmp.Diff(clitest.Answer{Code: 1, Stdout: want, Stderr: silent}, clitest.Answer{Code: got.Code, Stdout: squeezed(got.Stdout), Stderr: got.Stderr}); diff != "" {
		t.Errorf("a list (-want +got):\n%s", diff)
	}
	got = d.run(t, "proxies", "front-1")
	if got.Code != 1 || !strings.Contains(got.Stderr, "pod front-1 has a proxy (mode redirect) that no replica knows which answered\nerror: 1 of 2 replicas") {
		t.Errorf("of a pod that may be there: %+v", got)
	}
	got = d.run(t, "proxies", "-o", "yaml")
	if got.Code != 1 || !strings.Contains(got.Stdout, "error: 'reading proxies: no route to host'") || !strings.Contains(got.Stdout, "answered: true") {
		t.Errorf("as YAML: %+v", got)
	}
}

func TestProxies_SaysWhatItMayNotRead(t *testing.T) {
	d := meshOf()
	d.hooks.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		var o client.ListOptions
		o.ApplyOptions(options)
		if _, pods := list.(*corev1.PodList); pods && o.Namespace == "shop" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
		}
		return c.List(ctx, list, options...)
	}
	got := d.run(t, "proxies", "--no-headers")
	if got.Code != 0 || !strings.HasPrefix(got.Stderr, "Warning: which injected pods are not connected cannot be said: listing injected pods: pods is forbidden") || strings.Contains(got.Stdout, "lost-0") {
		t.Errorf("%+v", got)
	}
}

func TestProxies_WithoutAMesh(t *testing.T) {
	want := clitest.Answer{Code: 1, Stdout: "", Stderr: "error: no discovery server runs in plumbline-system that could be asked: is the mesh turned on (mesh.enabled of the chart)? --system-namespace names another place\n"}
	if diff := cmp.Diff(want, (discovery{}).run(t, "proxies")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = clitest.Answer{Code: 0, Stdout: "", Stderr: "No proxies found in shop namespace.\n"}
	if diff := cmp.Diff(want, (discovery{replicas: map[string]*replica{"xds-a": {}}}).run(t, "proxies")); diff != "" {
		t.Errorf("a mesh without proxies (-want +got):\n%s", diff)
	}
}

func TestProxies_RefusesWhatMakesNoSense(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"two pods":                      {[]string{"a", "b"}, "name one pod at most"},
		"a pod of all namespaces":       {[]string{"a", "-A"}, "a resource cannot be retrieved by name across all namespaces"},
		"an unknown stage":              {[]string{"--stage=Stuck"}, `invalid --stage "Stuck", want one of NotConnected, Blocked, Refused, Held, Unknown, Going, OnTheWay, Queued, Waiting, Acknowledged`},
		"a strange service":             {[]string{"--service=a/b/c"}, `invalid --service "a/b/c", want [namespace/]name`},
		"half a service":                {[]string{"--service=a/"}, `invalid --service "a/", want [namespace/]name`},
		"a service of one that is away": {[]string{"--service=a", "--stage=NotConnected"}, "--service and --stage NotConnected exclude each other"},
		"a stage of no resource":        {[]string{"a", "--stage=Blocked"}, "--stage Blocked is not a stage of a resource"},
		"an output that there is not":   {[]string{"-o", "name"}, "unable to match a printer"},
	} {
		t.Run(name, func(t *testing.T) {
			got := clitest.RunOffline(t, verbs, "", append([]string{"proxies"}, tc.args...)...)
			if got.Code != 1 || !strings.Contains(got.Stderr, tc.want) {
				t.Errorf("%+v, want %q", got, tc.want)
			}
		})
	}
}

func TestProxies_NothingThatAProxySaysMovesTheTerminal(t *testing.T) {
	d := meshOf()
	c := &d.replicas["xds-a"].proxies[1]
	c.Node, c.Resources[1].Why, c.Resources[1].Name = clitest.Hostile, clitest.Hostile, clitest.Hostile
	d.replicas["xds-b"].away = errors.New("no route to host")
	for _, args := range [][]string{{"proxies", "-o", "wide"}, {"proxies", "front-0", "-o", "wide"}, {"proxies", "front-0", "-o", "json"}, {"proxies", clitest.Hostile}} {
		got := d.run(t, args...)
		for line := range strings.SplitSeq(got.Stdout+got.Stderr, "\n") {
			if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) && r != '\t' }); i >= 0 || strings.HasPrefix(line, "DEPLOYMENT") {
				t.Errorf("%q: %q is printed", args, line)
			}
		}
	}
}

func TestProxies_Completes(t *testing.T) {
	d := meshOf()
	d.pods = append(d.pods, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"plumbline.dev/managed": "true"}}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}})
	for typed, want := range map[string]string{"front-": "front-0\nfront-1\n:4\n", "plain": ":4\n"} {
		if got := d.run(t, "__complete", "proxies", typed); !strings.HasPrefix(got.Stdout, want) {
			t.Errorf("%q is completed with %q, want %q", typed, got.Stdout, want)
		}
	}
	if got := d.run(t, "__complete", "proxies", "--service", ""); !strings.HasPrefix(got.Stdout, "web\n:4\n") {
		t.Errorf("services: %q", got.Stdout)
	}
}
