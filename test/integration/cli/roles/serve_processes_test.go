// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/evidencehttp"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
	"github.com/plumbline-dev/plumbline/internal/serve/callers"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/kubelet"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

const (
	historyPath  = "/api/v1/remediation/history"
	evidencePath = historyPath + "/shop.done/evidence"
	proxiesPath  = "/api/v1/proxies"

	// ofHour is a release that the replica xds-a, which leads, has the last hour of.
	ofHour   = "of-hour"
	hourPath = "ab-releases/" + tenant + "." + ofHour + "/health?history=true"
)

// processes are an executor and two replicas of the discovery server, as far as the API server and the REST API reach them.
type processes struct {
	executor *httptest.Server

	mu sync.Mutex
	// tokens are those that the executor got, and away the replica that does not answer.
	tokens []string
	away   string
}

func startProcesses(t *testing.T) *processes {
	t.Helper()
	p := &processes{}
	p.serveRecords(t, clitest.PackedArchive(t))
	p.serveProxies(t)
	return p
}

// serveRecords has an archive served at the health port of a pod, whose keys the cluster publishes.
func (p *processes) serveRecords(t *testing.T, archive *clitest.Archive) {
	t.Helper()
	handler := evidencehttp.Handler(archive.Writer.Store)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(backend.Own(t), "0"))
	must(t, err)
	p.executor = &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // it ends with the test
		p.mu.Lock()
		p.tokens = append(p.tokens, r.Header.Values("Authorization")...)
		p.mu.Unlock()
		handler.ServeHTTP(w, r)
	})}}
	p.executor.Start()
	t.Cleanup(p.executor.Close)
	at := listener.Addr().(*net.TCPAddr) //nolint:forcetypeassert // a listener of tcp has no other address
	runPod(t, "plumbline-executor-0", "executor", "", at)

	keys := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: records.KeysConfigMap}, Data: map[string]string{"public.pem": archive.Public}}
	must(t, admin.Create(t.Context(), keys))
	t.Cleanup(func() { must(t, admin.Delete(context.WithoutCancel(t.Context()), keys)) })
}

// serveProxies has proxies shown at loopback addresses of pods, to which the kubelet leads.
func (p *processes) serveProxies(t *testing.T) {
	t.Helper()
	servers := map[string]*httptest.Server{}
	mesh := clitest.MeshOf()
	mesh.Replicas["xds-a"].Hours[tenant+"/"+ofHour] = clitest.HourOf(clitest.Now)
	for name, replica := range mesh.Replicas {
		servers[name] = httptest.NewServer(replica.Routes(name, time.Now))
		t.Cleanup(servers[name].Close)
	}
	kubelet.Start(t, admin, "node-of-xds", func(ctx context.Context, namespace, pod, port string) (net.Conn, error) {
		p.mu.Lock()
		away := p.away
		p.mu.Unlock()
		if namespace != rendered.Namespace || servers[pod] == nil || port != strconv.Itoa(proxieshttp.Port) || pod == away {
			return nil, fmt.Errorf("nothing listens at port %s of pod %s/%s", port, namespace, pod)
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", servers[pod].Listener.Addr().String())
	})
	for name := range servers {
		runPod(t, name, "xds", "node-of-xds", &net.TCPAddr{IP: net.ParseIP(backend.Own(t)), Port: proxieshttp.Port})
	}
}

// runPod makes a pod of Plumbline until the test ends, and says what its kubelet would: that it runs, and where.
func runPod(t *testing.T, name, component, node string, at *net.TCPAddr) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/name": "plumbline", "app.kubernetes.io/component": component}},
		Spec: corev1.PodSpec{NodeName: node, ServiceAccountName: "default", AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{
			Name: component, Image: "plumbline.invalid/" + component, Ports: []corev1.ContainerPort{{Name: "health", ContainerPort: int32(at.Port)}}, //nolint:gosec // a port
		}}},
	}
	must(t, admin.Create(t.Context(), pod))
	t.Cleanup(func() { must(t, admin.Delete(context.WithoutCancel(t.Context()), pod, client.GracePeriodSeconds(0))) })
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, at.IP.String(), []corev1.PodIP{{IP: at.IP.String()}}
	must(t, admin.Status().Update(t.Context(), pod))
}

// grant gives a user rights in Plumbline's namespace until the test ends.
func grant(t *testing.T, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, GenerateName: "granted-"}, Rules: rules}
	must(t, admin.Create(t.Context(), role))
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}
	must(t, admin.Create(t.Context(), binding))
	t.Cleanup(func() {
		for _, o := range []client.Object{role, binding} {
			must(t, admin.Delete(context.WithoutCancel(t.Context()), o))
		}
	})
	must(t, apiserver.AwaitBound(t.Context(), admin, binding.Subjects[0], rendered.Namespace, binding.RoleRef))
}

// awaitLacking waits until a request lacks another right: those that were granted are known.
func (s *served) awaitLacking(t *testing.T, token, path string, want wire.MissingRight) {
	t.Helper()
	b := s.as(t, token)
	poll.Until(t, patience, fmt.Sprintf("%s lacks the right to %s %s", path, want.Verb, want.Kind), func() error {
		s.pass(time.Minute) // no answer of before is remembered
		var p wire.Problem
		b.Want(t, path, http.StatusForbidden, &p)
		if p.Right == nil || *p.Right != want {
			return fmt.Errorf("it lacks %+v", p.Right)
		}
		return nil
	})
}

func core(verb, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
}

// Records and proxies need the rights that the plugin needs, and are the same then.
func TestTheAPIServesRecordsAndProxiesToThoseWhoMayReachThem(t *testing.T) {
	processes := startProcesses(t)
	s := startServe(t)
	underWay(t, ofHour)
	poll.True(t, patience, "the cache has the release", func() bool {
		code, _ := s.as(t, tokenOf(superuser)).send(t, "/api/v1/ab-releases/"+tenant+"."+ofHour)
		return code == http.StatusOK
	})
	t.Run("a viewer", func(t *testing.T) {
		b := s.as(t, tokenOf(viewer))
		for path, right := range map[string]wire.MissingRight{
			"remediation/history":                    {Verb: "get", Kind: "ConfigMap", Namespace: rendered.Namespace},
			"remediation/history/shop.done/evidence": {Verb: "get", Kind: "ConfigMap", Namespace: rendered.Namespace},
			"proxies":                                {Verb: "list", Kind: "Pod", Namespace: rendered.Namespace},
			hourPath:                                 {Verb: "list", Kind: "Pod", Namespace: rendered.Namespace},
		} {
			wantForbidden(t, b, path, right)
		}
		b.Want(t, historyPath+"?source=plan", http.StatusOK, &[]wire.Result{})
	})
	t.Run("a viewer with one right after the other", func(t *testing.T) {
		grant(t, userOf(viewer), core("get", "configmaps", records.KeysConfigMap))
		s.awaitLacking(t, tokenOf(viewer), historyPath, wire.MissingRight{Verb: "list", Kind: "Pod", Namespace: rendered.Namespace})
		grant(t, userOf(viewer), core("list", "pods"))
		s.awaitLacking(t, tokenOf(viewer), historyPath, wire.MissingRight{Verb: "get", Kind: "pods/proxy", Namespace: rendered.Namespace})
		s.awaitLacking(t, tokenOf(viewer), proxiesPath+"?namespace="+rendered.Namespace, wire.MissingRight{Verb: "create", Kind: "pods/portforward", Namespace: rendered.Namespace})
		processes.wantNoToken(t)
	})
	t.Run("a user with the rights", func(t *testing.T) { processes.wantAsThePlugin(t, s) })
	t.Run("the last hour of a release", func(t *testing.T) { wantHourAsThePlugin(t, s) })
	t.Run("a token for the API alone", func(t *testing.T) { wantRecordsAlone(t, s) })
	t.Run("a replica that does not answer", func(t *testing.T) {
		processes.mu.Lock()
		processes.away = "xds-b"
		processes.mu.Unlock()
		wantUnavailable(t, s, proxiesPath, "1 of 2 replicas of the discovery server did not answer: xds-b")
		wantHourAsThePlugin(t, s) // the replica that leads answers
	})
	t.Run("an executor that is away", func(t *testing.T) {
		processes.executor.Close()
		for _, path := range []string{historyPath, evidencePath} {
			wantUnavailable(t, s, path, "pod plumbline-executor-0 does not serve its records (executor.evidence.serve of the chart)")
		}
	})
	for _, secret := range []string{"token-of", "Bearer", "eyJ"} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}

// wantNoToken demands that the executor got no token of a caller and none of the account.
func (p *processes) wantNoToken(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.tokens) > 0 {
		t.Errorf("the executor got %d tokens", len(p.tokens))
	}
}

// wantAsThePlugin compares the answers with those of a console of the same user.
func (p *processes) wantAsThePlugin(t *testing.T, s *served) {
	t.Helper()
	here, there := s.as(t, tokenOf(superuser)), openConsole(t, userOf(superuser), superuser)
	for _, path := range []string{historyPath, historyPath + "?source=evidence", evidencePath, proxiesPath, proxiesPath + "?namespace=shop&stage=held"} {
		code, got := here.send(t, path)
		other, want := there.send(t, path)
		if code != http.StatusOK || other != code {
			t.Fatalf("%s: %d %s, and by the plugin %d %s", path, code, got, other, want)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-plugin +door):\n%s", path, diff)
		}
	}
	var proxies []wire.Proxy
	here.Want(t, proxiesPath, http.StatusOK, &proxies)
	if len(proxies) != 4 {
		t.Errorf("%d proxies are shown: %+v", len(proxies), proxies)
	}
	var packet wire.Evidence
	here.Want(t, evidencePath, http.StatusOK, &packet)
	if len(packet.Envelopes) == 0 || slices.ContainsFunc(packet.Problems, func(p string) bool { return !strings.Contains(p, "the end of the chain is not known") }) {
		t.Errorf("the packet has %d envelopes and the problems %q", len(packet.Envelopes), packet.Problems)
	}
	p.wantNoToken(t)
}

// wantHourAsThePlugin compares the last hour of a release with that of a console of the same user.
func wantHourAsThePlugin(t *testing.T, s *served) {
	t.Helper()
	here, there := s.as(t, tokenOf(superuser)), openConsole(t, userOf(superuser), superuser)
	var got, want wire.Health
	here.Want(t, "/api/v1/"+hourPath, http.StatusOK, &got)
	there.Want(t, "/api/v1/"+hourPath, http.StatusOK, &want)
	if diff := cmp.Diff(want.LastHour, got.LastHour); diff != "" || got.LastHour == nil || len(got.LastHour.Looks) == 0 {
		t.Errorf("the last hour is %+v (-plugin +door):\n%s", got.LastHour, diff)
	}
	var traffic wire.Traffic
	here.Want(t, strings.Replace("/api/v1/"+hourPath, "/health", "/traffic", 1), http.StatusOK, &traffic)
	if traffic.LastHour == nil || len(traffic.LastHour.Cells) == 0 {
		t.Errorf("the counts of the last hour are %+v", traffic.LastHour)
	}
}

// wantRecordsAlone has an account with the rights read records by a token that the API server does not take. Ports are forwarded by
// the API server, which wants a token of its own.
func wantRecordsAlone(t *testing.T, s *served) {
	t.Helper()
	makeAccount(t, "screen-of-records", "plumbline-view")
	grant(t, "system:serviceaccount:"+tenant+":screen-of-records",
		rbacv1.PolicyRule{APIGroups: []string{"plumbline.dev"}, Resources: []string{"remediationledgers"}, Verbs: []string{"list"}},
		core("get", "configmaps", records.KeysConfigMap, records.AnchorConfigMap), core("list", "pods"), core("get", "pods/proxy", "plumbline-executor-0:"+executorPort(t)), core("create", "pods/portforward"))
	b := s.as(t, accountToken(t, tenant, "screen-of-records", nil, callers.Audience))
	var packet wire.Evidence
	b.Want(t, evidencePath, http.StatusOK, &packet)
	if packet.PlanName != "done" {
		t.Errorf("the packet is of plan %q", packet.PlanName)
	}
	var problem wire.Problem
	for _, path := range []string{proxiesPath, "/api/v1/" + hourPath} {
		b.Want(t, path, http.StatusForbidden, &problem)
		if problem.Type != wire.ProblemBase+string(wire.TokenAudience) {
			t.Errorf("%s: the problem is %+v", path, problem)
		}
	}
}

// executorPort reads the port of the executor from its pod.
func executorPort(t *testing.T) string {
	t.Helper()
	pod := &corev1.Pod{}
	must(t, admin.Get(t.Context(), client.ObjectKey{Namespace: rendered.Namespace, Name: "plumbline-executor-0"}, pod))
	return strconv.Itoa(int(pod.Spec.Containers[0].Ports[0].ContainerPort))
}

func wantUnavailable(t *testing.T, s *served, path, detail string) {
	t.Helper()
	var problem wire.Problem
	s.as(t, tokenOf(superuser)).Want(t, path, http.StatusServiceUnavailable, &problem)
	if problem.Detail != detail {
		t.Errorf("%s: %v, want %q", path, errors.New(problem.Detail), detail)
	}
}
