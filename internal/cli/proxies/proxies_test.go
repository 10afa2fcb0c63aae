// SPDX-License-Identifier: Apache-2.0

package proxies

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/actions/proxies"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// discovery is a cluster with a discovery server, before hooks.
type discovery struct {
	*clitest.Mesh
	hooks interceptor.Funcs
}

func meshOf() discovery { return discovery{Mesh: clitest.MeshOf()} }

func (d discovery) run(t *testing.T, args ...string) clitest.Answer {
	t.Helper()
	c := clitest.Cluster{Objects: d.Objects(), Hooks: d.hooks, Forward: d.Forward(t)}.Connect(t)
	inv, finish := clitest.NewInvocation(t, "")
	inv.Connect = func() (*invocation.Cluster, error) { return c, nil }
	return finish(clitest.Run(t, inv, verbs, args))
}

func TestProxies_ListsThoseOfAllReplicasWorstFirst(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
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

// The page of the plugin shows this output.
func TestProxies_Golden(t *testing.T) {
	got := meshOf().run(t, "proxies")
	if got.Code != 0 || got.Stderr != "" {
		t.Errorf("got %d, %s", got.Code, got.Stderr)
	}
	golden.Check(t, filepath.Join("testdata", "list.txt"), got.Stdout)
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
	var report proxies.Report
	clitest.Must(t, json.Unmarshal([]byte(got.Stdout), &report))
	if len(report.Proxies) != 1 || len(report.Proxies[0].Resources) != 1 || report.Proxies[0].Resources[0].Why != "no such matcher" || report.Proxies[0].Replica != "xds-b" {
		t.Errorf("as JSON: %s", got.Stdout)
	}
}

func TestProxies_SaysWhyAPodIsNotConnected(t *testing.T) {
	d := meshOf()
	waits := clitest.InjectedPod("shop", "waits-0")
	waits.Status.Phase = corev1.PodPending
	d.Pods = append(d.Pods, waits)
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
	d.Replicas["xds-b"].Away = errors.New("no route to host")
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
	if diff := cmp.Diff(want, (discovery{Mesh: &clitest.Mesh{}}).run(t, "proxies")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = clitest.Answer{Code: 0, Stdout: "", Stderr: "No proxies found in shop namespace.\n"}
	if diff := cmp.Diff(want, (discovery{Mesh: &clitest.Mesh{Replicas: map[string]*clitest.Replica{"xds-a": {}}}}).run(t, "proxies")); diff != "" {
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
	c := &d.Replicas["xds-a"].Proxies[1]
	c.Node, c.Resources[1].Why, c.Resources[1].Name = clitest.Hostile, clitest.Hostile, clitest.Hostile
	d.Replicas["xds-b"].Away = errors.New("no route to host")
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
	d.Pods = append(d.Pods, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"plumbline.dev/managed": "true"}}},
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
