// SPDX-License-Identifier: Apache-2.0

//go:build integration

package mesh

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli"
	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/browser"
	"github.com/plumbline-dev/plumbline/test/harness/console"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/kubelet"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

const system = "plumbline-system"

// replica is the pod of a discovery server, as far as the API server needs it to forward
// a port: on a node whose kubelet leads to what shows the proxies.
type replica struct {
	t *testing.T
	// url is where they are shown.
	url string
	// kubeconfig of who asks by way of the API server.
	kubeconfig string
}

// shown has the proxies of a discovery server shown at a port of a pod.
func shown(t *testing.T, name string) (*replica, func(*discovery.Setup)) {
	t.Helper()
	h := proxieshttp.New(name, time.Now)
	server := httptest.NewServer(h.Routes())
	t.Cleanup(server.Close)
	s := &shop{t: t, namespace: system}
	if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	node := "node-of-" + name
	kubelet.Start(t, admin, node, func(ctx context.Context, namespace, pod, port string) (net.Conn, error) {
		if namespace != system || pod != name || port != strconv.Itoa(proxieshttp.Port) {
			return nil, fmt.Errorf("nothing listens at port %s of pod %s/%s", port, namespace, pod)
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
	})
	pod := &corev1.Pod{ObjectMeta: s.named(name), Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "xds", Image: "xds"}}}}
	pod.Labels = map[string]string{"app.kubernetes.io/name": "plumbline", "app.kubernetes.io/component": "xds"}
	pod.Spec.AutomountServiceAccountToken = new(false)
	s.create(pod)
	s.runs(pod)
	t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(t.Context()), pod, client.GracePeriodSeconds(0)); err != nil {
			t.Error(err)
		}
	})
	return &replica{t, server.URL, kubeconfig(t)}, func(setup *discovery.Setup) {
		setup.Serving = func(d *serve.Server) { h.Show(d) }
		setup.Server.Stream.RouteDeadline = time.Hour // what is held stays so until it is looked at
	}
}

// runs says what the kubelet would: that a pod runs, and where.
func (s *shop) runs(pod *corev1.Pod) {
	s.t.Helper()
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, backend.Own(s.t)
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	s.must(admin.Status().Update(s.t.Context(), pod))
}

// kubeconfig of the administrator.
func kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "c",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// plumbline carries out a command of the plugin.
func (r *replica) plumbline(namespace string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	if args[0] == "proxies" {
		args = append(args, "--system-namespace", system)
	}
	code = cli.Run(r.t.Context(), append([]string{"--kubeconfig", r.kubeconfig, "-n", namespace}, args...),
		cli.Environment{In: strings.NewReader(""), Out: &out, Err: &errs, Now: time.Now, Version: "test"})
	return code, out.String(), errs.String()
}

// resource of a proxy, as the plugin tells it.
func (r *replica) resource(pod *corev1.Pod, kind, name string) (proxieshttp.Resource, error) {
	code, out, errs := r.plumbline(pod.Namespace, "proxies", pod.Name, "-o", "json")
	if code != 0 {
		return proxieshttp.Resource{}, fmt.Errorf("exit code %d: %s", code, errs)
	}
	var report struct{ Proxies []proxieshttp.Proxy }
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		return proxieshttp.Resource{}, err
	}
	for _, p := range report.Proxies {
		for _, found := range p.Resources {
			if found.Type == kind && found.Name == name {
				return found, nil
			}
		}
	}
	return proxieshttp.Resource{}, fmt.Errorf("there is no %s %s: %s", kind, name, out)
}

// becomes waits until a resource is in a stage.
func (r *replica) becomes(pod *corev1.Pod, kind, name string, stage ads.Stage) (is proxieshttp.Resource) {
	r.t.Helper()
	poll.Until(r.t, patience, fmt.Sprintf("%s %s is %s", kind, name, stage), func() (err error) {
		is, err = r.resource(pod, kind, name)
		if err == nil && is.Stage != stage {
			err = fmt.Errorf("it is %+v", is)
		}
		return err
	})
	return is
}

// console is one of the users of a kubeconfig.
func (r *replica) console(flags ...string) *console.Console {
	r.t.Helper()
	return console.Open(r.t, append([]string{"--kubeconfig", r.kubeconfig, "--system-namespace=" + system}, flags...)...)
}

// consoleShows demands that the console tells the resources that the proxy has acknowledged.
func (r *replica) consoleShows(pod *corev1.Pod, route string) {
	r.t.Helper()
	c := r.console()
	var got []wire.Proxy
	c.Want(r.t, "/api/v1/proxies?namespace="+pod.Namespace, http.StatusOK, &got)
	if len(got) != 1 || got[0].Pod != pod.Name || got[0].Stage != "acknowledged" || got[0].Replica != "xds-0" || got[0].Stages["acknowledged"] < 2 {
		r.t.Errorf("the proxies are %+v", got)
	}
	c.Shows(r.t, "/proxies?namespace="+pod.Namespace, http.StatusOK, "1 proxies: 1 Acknowledged", pod.Namespace+"/"+pod.Name)
	page := "/proxies/" + pod.Namespace + "/" + pod.Name
	c.Shows(r.t, page, http.StatusOK, route, "Acknowledged")
	if dom, complaints := browser.Open(r.t, c.WithKey(r.t, page)); len(complaints) > 0 || !strings.Contains(dom, "<h1>Proxy "+pod.Namespace+"/"+pod.Name+"</h1>") {
		r.t.Errorf("the browser complains: %s in %s", strings.Join(complaints, "\n"), dom)
	}
}

// page is the text of the page for people.
func (r *replica) page(query string) string {
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.url+proxieshttp.Page+query, http.NoBody)
	if err != nil {
		r.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil {
		r.t.Fatal(err)
	}
	return body.String()
}

func TestWhatIsSentAcknowledgedAndHeldIsShown(t *testing.T) {
	s := newShop(t)
	s.service("web", backend.Start(t, "one"))
	r, show := shown(t, "xds-0")
	d := discover(t, show)
	pod := s.pod("front-0", nil)
	e, fronts := s.proxy(d, pod, "web", "later")
	backend.Answers(t, patience, fronts["web"], "200 one")
	route, cluster := s.namespace+"/web|80", s.namespace+"/web|80|"
	if is := r.becomes(pod, "Route", route, ads.Acknowledged); is.Has != is.Wants || is.Has == "" || is.Why != "" || is.Since == nil {
		t.Errorf("a route that is acknowledged is shown as %+v", is)
	}
	r.becomes(pod, "Cluster", cluster, ads.Acknowledged)
	r.consoleShows(pod, route)
	code, out, errs := r.plumbline(s.namespace, "proxies", "-o", "wide")
	if line := strings.Fields(strings.Split(out, "\n")[1]); code != 0 || line[0] != pod.Name || line[1] != "Acknowledged" || line[9] != "xds-0" || line[10] != "envoy" || !strings.HasPrefix(line[11], "1.") {
		t.Errorf("the list is (%d) %s\n%s", code, out, errs)
	}

	// While it sleeps, a Service comes up: its route waits for endpoints, for which it
	// has not asked.
	e.Signal(syscall.SIGSTOP)
	s.service("later", backend.Start(t, "two"))
	held := r.becomes(pod, "Route", s.namespace+"/later|80", ads.Held)
	if want := "endpoints of [" + s.namespace + "/later|80|] are not acknowledged"; held.Why != want || held.Has == "" || held.Has == held.Wants {
		t.Errorf("a route that is held is shown as %+v, want %q", held, want)
	}
	if on := r.becomes(pod, "Cluster", s.namespace+"/later|80|", ads.OnTheWay); on.Has != "" || on.Sent != on.Wants {
		t.Errorf("a cluster that was sent is shown as %+v", on)
	}
	if page := r.page("?stage=Held"); !strings.Contains(page, s.namespace+"/"+pod.Name) {
		t.Errorf("the page does not list it:\n%s", page)
	}
	if page := r.page("?namespace=" + s.namespace + "&pod=" + pod.Name); !strings.Contains(page, "are not acknowledged") {
		t.Errorf("the page does not say what is waited for:\n%s", page)
	}
	e.Signal(syscall.SIGCONT)
	backend.Answers(t, patience, fronts["later"], "200 two")
	r.becomes(pod, "Route", s.namespace+"/later|80", ads.Acknowledged)
}

// An Envoy takes no second listener on one address: one that it has from elsewhere keeps
// it from taking ours.
func TestWhatEnvoyRefusesIsShownWithWhatItSays(t *testing.T) {
	s := newShop(t)
	s.service("web", backend.Start(t, "one"))
	var service corev1.Service
	s.must(admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "web"}, &service))
	at := netip.AddrPortFrom(netip.MustParseAddr(service.Spec.ClusterIP), 80)
	squatter := envoyxds.Local(ir.Service{Namespace: s.namespace, Name: "web"}, ir.Port{Name: "http", Number: 80, Protocol: ir.HTTP}, at)
	squatter.Name, squatter.BindToPort = "squatter", wrapperspb.Bool(false)
	r, show := shown(t, "xds-0")
	d := discover(t, show)
	pod := s.pod("front-0", nil)
	envoy.Start(t, envoy.Options{
		Address: d.address, Authority: d.authority, Node: "x", Token: s.token(pod, identity.Audience), Listeners: []*listenerv3.Listener{squatter},
	})
	refused := r.becomes(pod, "Listener", at.String(), ads.Refused)
	if !strings.Contains(refused.Why, "duplicate address") || refused.Has != "" || refused.Wants == "" {
		t.Errorf("it is shown as %+v", refused)
	}
	code, out, errs := r.plumbline(s.namespace, "proxies", "--stage", "Refused", "--no-headers")
	if fields := strings.Fields(out); code != 0 || len(fields) < 2 || fields[0] != pod.Name || fields[1] != "Refused" {
		t.Errorf("the list is (%d) %s\n%s", code, out, errs)
	}
	if page := r.page("?namespace=" + s.namespace + "&pod=" + pod.Name + "&stage=Refused"); !strings.Contains(page, "duplicate address") {
		t.Errorf("the page does not say why:\n%s", page)
	}
}

func TestAPodWhoseProxyIsNotThereIsShownAsNotConnected(t *testing.T) {
	s := newShop(t)
	r, show := shown(t, "xds-0")
	discover(t, show)
	pod := s.pod("lost-0", nil)
	pod.Labels = map[string]string{inject.LabelProxy: string(inject.Explicit)}
	s.must(admin.Update(t.Context(), pod))
	s.runs(pod)
	code, out, errs := r.plumbline(s.namespace, "proxies", "--no-headers")
	if fields := strings.Fields(out); code != 0 || len(fields) < 2 || fields[0] != "lost-0" || fields[1] != "NotConnected" {
		t.Errorf("the list is (%d) %s\n%s", code, out, errs)
	}
	code, _, errs = r.plumbline(s.namespace, "proxies", "lost-0")
	if code != 1 || !strings.Contains(errs, "no replica of the discovery server knows it") {
		t.Errorf("asked for it: (%d) %s", code, errs)
	}
}

// M13 of the review of the mesh. The right to reach pods by the API server's proxy, which
// any scraper has, is not enough: the proxies are not at a port of the network.
func TestTheRightsOfWhoAsksDecide(t *testing.T) {
	s := newShop(t)
	r, show := shown(t, "xds-0")
	discover(t, show)
	const user = "plumbline-reader"
	ask := func() (code int, out, errs string) {
		return r.plumbline(s.namespace, "proxies", "--as", user, "-o", "json")
	}
	grant(t, user, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}})
	grant(t, user, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/proxy"}, Verbs: []string{"get", "create"}})
	const want = `it takes the permission to create pods/portforward in namespace plumbline-system: pods "xds-0" is forbidden: User "plumbline-reader" cannot`
	poll.Until(t, patience, "a user without the right is told which one is missing", func() error {
		code, out, errs := ask()
		if code != 1 || strings.Contains(out, `"answered": true`) || !strings.Contains(errs, want) {
			return fmt.Errorf("(%d) %s\n%s", code, out, errs)
		}
		return nil
	})
	grantIn(t, s.namespace, user, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}})
	path, c := "/api/v1/proxies?namespace="+s.namespace, r.console("--as", user)
	poll.Until(t, patience, "the console names the missing right", func() error {
		code, _, body := c.Send(t, path)
		var problem wire.Problem
		if err := json.Unmarshal(body, &problem); err != nil {
			return fmt.Errorf("%d %s: %w", code, body, err)
		}
		if want := (wire.MissingRight{Verb: "create", Kind: "pods/portforward", Namespace: system}); code != http.StatusForbidden || problem.Right == nil || *problem.Right != want {
			return fmt.Errorf("%d %s, want %+v", code, body, want)
		}
		return nil
	})
	c.Shows(t, "/proxies?namespace="+s.namespace, http.StatusOK, "you may not create pods/portforward in namespace "+system)
	grant(t, user, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/portforward"}, Verbs: []string{"get", "create"}})
	poll.Until(t, patience, "a user with the right is answered", func() error {
		code, out, errs := ask()
		if code != 0 || !strings.Contains(out, `"answered": true`) {
			return fmt.Errorf("(%d) %s\n%s", code, out, errs)
		}
		return nil
	})
	c.Want(t, path, http.StatusOK, &[]wire.Proxy{})
}

// grant a right in Plumbline's namespace to a user, until the test ends.
func grant(t *testing.T, user string, rule rbacv1.PolicyRule) {
	t.Helper()
	grantIn(t, system, user, rule)
}

// grantIn gives a right in a namespace to a user, until the test ends.
func grantIn(t *testing.T, namespace, user string, rule rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: user + "-"}, Rules: []rbacv1.PolicyRule{rule}}
	if err := admin.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}
	if err := admin.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, object := range []client.Object{role, binding} {
			if err := admin.Delete(context.WithoutCancel(t.Context()), object); err != nil {
				t.Error(err)
			}
		}
	})
}
