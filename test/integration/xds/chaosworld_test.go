// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/relay"
)

// seat is a replica of the discovery server, with an address of loopback to itself. Its process
// comes and goes.
type seat struct {
	shop          *shop
	name, address string
	args          []string
	// process is nil while there is none; ready says what its readiness says.
	process *replica
	ready   bool
}

// seats are replicas that know of each other: pods with the same port at two addresses.
func (s *shop) seats(names ...string) (seats []*seat) {
	s.Helper()
	port := freeport.For(s.T)
	for i, name := range names {
		host := fmt.Sprintf("127.0.0.%d", i+2)
		pod := &corev1.Pod{ObjectMeta: system(name), Spec: corev1.PodSpec{ServiceAccountName: "plumbline-xds", Containers: []corev1.Container{{Name: "xds", Image: "xds"}}}}
		pod.Labels = map[string]string{"app.kubernetes.io/component": discovery.Component}
		s.create(pod)
		s.ready(pod, host)
		token := filepath.Join(s.TempDir(), "token")
		s.must(os.WriteFile(token, []byte(s.peerToken(pod)), 0o600))
		seats = append(seats, &seat{
			shop: s, name: name, address: net.JoinHostPort(host, strconv.Itoa(port)),
			args: []string{"--pod-name=" + name, "--peer-token-file=" + token},
		})
	}
	return seats
}

func (s *shop) peerToken(pod *corev1.Pod) string {
	s.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{discovery.PeerAudience}, ExpirationSeconds: new(int64(7200)),
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	s.must(s.c.admin.SubResource("token").Create(s.Context(), &corev1.ServiceAccount{ObjectMeta: system(pod.Spec.ServiceAccountName)}, request))
	return request.Status.Token
}

func (s *seat) start() {
	s.shop.Helper()
	var err error
	s.process, err = s.shop.c.process(binary, []string{"POD_NAME=" + s.name}, s.address, s.args...)
	s.shop.must(err)
}

// look asks for the readiness of its process, if there is one. It never ends by itself.
func (s *seat) look() {
	s.shop.Helper()
	if s.ready = false; s.process == nil {
		return
	}
	if err := s.process.Signal(syscall.Signal(0)); err != nil {
		s.shop.Fatalf("%s has ended by itself: %v\n%s", s.name, err, s.process.Said())
	}
	code, _, err := s.process.Get(s.shop.Context(), s.process.Health, "/readyz")
	s.ready = err == nil && code == http.StatusOK
}

// end its process, by force or as a kubelet does, if there is one.
func (s *seat) end(force bool) {
	s.shop.Helper()
	if s.process == nil {
		return
	}
	how := s.process.Stop
	if force {
		how = s.process.Kill
	}
	s.shop.must(how())
	s.process, s.ready = nil, false
}

// captured is a sidecar of mode redirect, and its way to the discovery servers.
type captured struct {
	*sidecar
	shop *shop
	way  *relay.Relay
	// outbound takes redirected connections.
	outbound string
	// away is whether no server can be reached.
	away bool
}

// captured is one of a new pod. Connections that pass untouched reach the upstream.
func (s *shop) captured(name, bundle, upstream string) *captured {
	s.Helper()
	c := &captured{shop: s, way: relay.Start(s.T), outbound: freeport.Address(s.T)}
	c.sidecar = s.injected(c.way.Address, name, bundle, []*listenerv3.Listener{envoy.Capture(s.T, c.outbound)}, envoy.PassThrough(upstream))
	return c
}

// listens says whether the proxy has a listener for a Service.
func (c *captured) listens(service string) error {
	text, err := c.Get(c.shop.Context(), "/listeners")
	if err == nil && !strings.Contains(text, service) {
		err = fmt.Errorf("its listeners are %s", text)
	}
	return err
}

// versionInfo of a route, as an Envoy dumps it.
var versionInfo = regexp.MustCompile(`"version_info": "([0-9]+)\.`)

// sequence of the route of a Service.
func (c *captured) sequence(service string) (int64, error) {
	name := regexp.QuoteMeta(envoyname.RouteName(c.shop.name, service, 80))
	text, err := c.Get(c.shop.Context(), "/config_dump?resource=dynamic_route_configs&name_regex="+url.QueryEscape(name))
	if err != nil {
		return 0, err
	}
	found := versionInfo.FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("it has no route %s: %s", name, text)
	}
	return strconv.ParseInt(found[1], 10, 64)
}

// hosts are the endpoints of a variation by address, and whether the proxy has ejected none of them.
func (c *captured) hosts(service, variation string) (healthy map[string]bool, err error) {
	text, err := c.Get(c.shop.Context(), "/clusters")
	if err != nil {
		return nil, err
	}
	cluster := envoyname.Slot{Namespace: c.shop.name, Service: service, Port: 80, Variation: variation}.String()
	flags, first := map[string]string{}, map[string]bool{}
	for line := range strings.Lines(text) {
		parts := strings.Split(strings.TrimSpace(line), "::")
		if len(parts) != 4 || parts[0] != cluster {
			continue
		}
		switch parts[2] {
		case "health_flags":
			flags[parts[1]] = parts[3]
		case "priority":
			first[parts[1]] = parts[3] == "0"
		}
	}
	healthy = map[string]bool{}
	for address, is := range first {
		if is {
			healthy[address] = flags[address] == "healthy"
		}
	}
	return healthy, nil
}

// instance is a pod of the divided Service and its application. The application may be gone while
// the pod is there.
type instance struct {
	*backend.Mortal
	pod   *corev1.Pod
	lives bool
}

func (s *shop) instance(name, version string) *instance {
	s.Helper()
	m := backend.NewMortal(s.T, echo(version))
	return &instance{m, s.serving(name, "web", version, m.Address), true}
}

// restart its application at its address.
func (i *instance) restart() {
	i.Start()
	i.lives = true
}

// die as an application does that ends well; the API server is told nothing.
func (i *instance) die() {
	if i.lives {
		i.End()
		i.lives = false
	}
}

// startGuest is an application that speaks HTTP/1.1 and HTTP/2, at an address that an EndpointSlice
// may have.
func startGuest(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(backend.Own(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(echo("guest"))
	s.Listener = l
	s.Config.Protocols = &http.Protocols{}
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return l.Addr().String()
}

// destination is where clients find a Service.
func destination(svc *corev1.Service) string {
	return netip.AddrPortFrom(netip.MustParseAddr(svc.Spec.ClusterIP), 80).String()
}
