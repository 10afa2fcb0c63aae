// SPDX-License-Identifier: Apache-2.0

//go:build integration

package replicas

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/proxypod"
	"github.com/plumbline-dev/plumbline/test/harness/relay"
)

const patience = time.Minute

// world is an installation with two replicas, and a namespace with a release.
type world struct {
	t         *testing.T
	system    string
	shop      string
	authority []byte
	serving   tls.Certificate
	leader    *replica
	other     *replica
	release   *v1alpha1.ABRelease
}

// replica of the discovery server; each has an address of loopback to itself.
type replica struct {
	pod      *corev1.Pod
	address  string
	registry *prometheus.Registry
	routers  *discovery.Routers
	watches  *discovery.Watches
	// api is the way to the API server.
	api  *relay.Relay
	stop func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t}
	w.system, w.shop = w.namespace("system-"), w.namespace("shop-")
	w.serving, w.authority = envoy.NewServing(t)
	for _, account := range []metav1.ObjectMeta{named(w.system, "plumbline-xds"), named(w.system, "somebody"), named(w.shop, "front")} {
		w.create(&corev1.ServiceAccount{ObjectMeta: account})
	}
	first, second := listeners(t)
	w.leader, w.other = w.replica("xds-a", first), w.replica("xds-b", second)
	ctx, stop := context.WithCancel(context.Background())
	led := make(chan error, 1)
	go func() { led <- w.leader.routers.Lead(ctx) }()
	t.Cleanup(func() {
		stop()
		w.must(<-led)
	})
	w.divide()
	return w
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(object client.Object) {
	w.t.Helper()
	w.must(admin.Create(w.t.Context(), object))
}

func (w *world) namespace(prefix string) string {
	w.t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	w.create(n)
	return n.Name
}

// pod that runs, though nobody runs it.
func (w *world) pod(meta metav1.ObjectMeta, account, ip string, ports ...corev1.ContainerPort) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: "app", Image: "app", Ports: ports}}}}
	if mode := meta.Labels[inject.LabelProxy]; mode != "" {
		proxypod.Inject(pod, inject.Mode(mode))
	}
	w.create(pod)
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, ip, []corev1.PodIP{{IP: ip}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.must(admin.Status().Update(w.t.Context(), pod))
	return pod
}

func (w *world) token(pod *corev1.Pod, audience string) string {
	w.t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{audience}, ExpirationSeconds: new(int64(600)),
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	account := &corev1.ServiceAccount{ObjectMeta: named(pod.Namespace, pod.Spec.ServiceAccountName)}
	w.must(admin.SubResource("token").Create(w.t.Context(), account, request))
	return request.Status.Token
}

// listeners on one port of two addresses, as two pods have.
func listeners(t *testing.T) (first, second net.Listener) {
	t.Helper()
	poll.Until(t, patience, "a port is free on both addresses", func() (err error) {
		if first, err = net.Listen("tcp", "127.0.0.2:0"); err != nil { //nolint:noctx // as a server would
			return err
		}
		_, port, _ := net.SplitHostPort(first.Addr().String())
		if second, err = net.Listen("tcp", "127.0.0.3:"+port); err != nil { //nolint:noctx // as a server would
			err = errors.Join(err, first.Close())
		}
		return err
	})
	return first, second
}

func (w *world) roots() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.authority)
	return roots
}

func (w *world) replica(name string, listener net.Listener) *replica {
	w.t.Helper()
	host, text, _ := net.SplitHostPort(listener.Addr().String())
	port, err := strconv.Atoi(text)
	w.must(err)
	meta := named(w.system, name)
	meta.Labels = map[string]string{"app.kubernetes.io/component": discovery.Component}
	r := &replica{pod: w.pod(meta, "plumbline-xds", host), address: listener.Addr().String(), registry: prometheus.NewRegistry(), routers: discovery.NewRouters()}
	r.watches, r.api = discovery.NewWatches(clock.RealClock{}, 5*time.Second), relay.Start(w.t, apiServer(w.t))
	through := rest.CopyConfig(config)
	through.Host = "https://" + r.api.Address
	token := filepath.Join(w.t.TempDir(), "token")
	w.must(os.WriteFile(token, []byte(w.token(r.pod, discovery.PeerAudience)+"\n"), 0o600))
	ctx, stop := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- discovery.Run(ctx, discovery.Setup{
			Config: through, Watches: r.watches, Listener: listener, Registry: r.registry, Log: inprocess.Told(w.t).WithName(name), Clock: clock.RealClock{}, Routers: r.routers,
			Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &w.serving, nil },
			Ready:       func() { close(ready) },
			Replicas:    discovery.Replicas{Namespace: w.system, Name: name, Port: port, ServerName: "127.0.0.1", Roots: w.roots, TokenFile: token},
		})
	}()
	r.stop = sync.OnceFunc(func() {
		stop()
		w.must(<-done)
	})
	w.t.Cleanup(r.stop)
	poll.Ready(w.t, patience, "the server "+name, ready, done)
	return r
}

// apiServer is the address of it.
func apiServer(t *testing.T) string {
	t.Helper()
	at, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	return cmp.Or(at.Host, config.Host)
}

// divide the service web between two versions.
func (w *world) divide() {
	w.t.Helper()
	w.create(&corev1.Service{ObjectMeta: named(w.shop, "web"), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web", "version": "stable"},
		Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("web")}},
	}})
	for _, version := range []string{"stable", "canary"} {
		at := netip.MustParseAddrPort(backend.Start(w.t, version))
		meta := named(w.shop, "web-"+version)
		meta.Labels = map[string]string{"app": "web", "version": version}
		w.pod(meta, "front", at.Addr().String(), corev1.ContainerPort{Name: "web", ContainerPort: int32(at.Port())})
	}
	w.release = &v1alpha1.ABRelease{ObjectMeta: named(w.shop, "web")}
	w.release.Spec.ServiceName, w.release.Spec.Stable = "web", "stable"
	for _, version := range []string{"stable", "canary"} {
		w.release.Spec.Variations = append(w.release.Spec.Variations, v1alpha1.Variation{Name: v1alpha1.VariationName(version), Selector: selector(version)})
	}
	w.release.Spec.TrafficSplit = v1alpha1.TrafficSplit{Type: v1alpha1.TrafficSplitPercentage, Percentages: map[string]v1alpha1.Percentage{"stable": v1alpha1.Percent(90), "canary": v1alpha1.Percent(10)}}
	w.create(w.release)
}

func selector(version string) *v1alpha1.PodSelector {
	return &v1alpha1.PodSelector{MatchLabels: map[string]v1alpha1.LabelValue{"app": "web", "version": v1alpha1.LabelValue(version)}}
}

// decide that the canary gets so much, as whoever decides would.
func (w *world) decide(sequence int64, canary int32) traffic.Router {
	w.t.Helper()
	variation := func(name string, weight, reserved int32) v1alpha1.EffectiveVariation {
		return v1alpha1.EffectiveVariation{Name: v1alpha1.VariationName(name), Selector: selector(name), Weight: new(weight), Reserved: new(reserved)}
	}
	w.release.Status.Effective = &v1alpha1.EffectiveSplit{
		Sequence: sequence, Generation: 1, ServiceName: "web", Salt: "salt", Key: v1alpha1.SplitKey{Type: v1alpha1.SplitKeyHeader, Name: "x-user"},
		Variations: []v1alpha1.EffectiveVariation{variation("stable", 10_000-canary, 0), variation("canary", canary, 10_000)},
	}
	w.must(admin.Status().Update(w.t.Context(), w.release))
	split, _ := release.SplitOf(w.release)
	router := w.leader.routers.Router(types.NamespacedName{Namespace: w.shop, Name: "web"})
	w.must(router.Apply(w.t.Context(), split))
	return router
}

// seen waits until what is known satisfies a test.
func (w *world) seen(router traffic.Router, what string, is func(traffic.Observation) bool) traffic.Observation {
	w.t.Helper()
	var seen traffic.Observation
	poll.Until(w.t, patience, what, func() (err error) {
		if seen, err = router.Observe(w.t.Context()); err == nil && !is(seen) {
			err = fmt.Errorf("what is seen is %+v", seen)
		}
		return err
	})
	return seen
}

func proven(sequence uint64, proxies int) func(traffic.Observation) bool {
	return func(s traffic.Observation) bool {
		return s.Knowledge == traffic.Proven && s.Sequence == sequence && s.Wanted == proxies && s.Acknowledged == proxies && len(s.OutOfSync) == 0
	}
}

// sidecar is a proxy, its pod, and the way to its replica, which can be changed.
type sidecar struct {
	*envoy.Envoy
	name, front string
	way         *relay.Relay
}

// sidecar of a new pod, which is connected to a replica.
func (w *world) sidecar(name string, r *replica) *sidecar {
	w.t.Helper()
	meta := named(w.shop, name)
	meta.Labels = map[string]string{inject.LabelProxy: string(inject.Redirect)}
	pod := w.pod(meta, "front", proxypod.Address)
	s := &sidecar{name: w.shop + "/" + name, way: relay.Start(w.t, r.address)}
	at := netip.MustParseAddrPort(freeport.Address(w.t))
	options := envoy.Options{Address: s.way.Address, Authority: w.authority, Node: s.name, Token: w.token(pod, identity.Audience)}
	options.Listeners = append(options.Listeners, envoyxds.Local(ir.Service{Namespace: w.shop, Name: "web"}, ir.Port{Name: "http", Number: 80, Protocol: ir.HTTP}, at))
	s.Envoy, s.front = envoy.Start(w.t, options), at.String()
	return s
}
