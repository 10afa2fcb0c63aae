// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/proxypod"
)

// sidecar is a proxy with the bootstrap of an injected pod, for which the test is the
// kubelet: it keeps the files of the volume.
type sidecar struct {
	*envoy.Envoy
	t *testing.T
	// front are the local ports of services, by name.
	front     map[string]string
	directory string
	token     string
	projected int
}

// sidecar of a new pod, with a local port for each service and further listeners. Its
// files have a bundle of authorities.
func (s *shop) sidecar(r *replica, name, bundle string, services []string, further ...*listenerv3.Listener) *sidecar {
	s.Helper()
	front := map[string]string{}
	for _, service := range services {
		front[service] = freeport.Address(s.T)
		further = append(further, envoyxds.Local(ir.Service{Namespace: s.name, Name: service}, http80, netip.MustParseAddrPort(front[service])))
	}
	c := s.injected(r.address, name, bundle, further, nil)
	c.front = front
	return c
}

// injected is the sidecar of a new pod, which calls the discovery server at an address. Besides what
// an injected pod has, it has these listeners and clusters.
func (s *shop) injected(address, name, bundle string, listeners []*listenerv3.Listener, clusters []*clusterv3.Cluster) *sidecar {
	s.Helper()
	pod := s.pod(name, proxied)
	s.ready(pod, proxypod.Address)
	c := &sidecar{t: s.T, directory: s.TempDir(), token: s.token(pod)}
	c.project(bundle)
	c.Envoy = envoy.Start(s.T, envoy.Options{
		Bootstrap: c.bootstrap(address, listeners, clusters),
		Arguments: []string{"--service-node", s.name + "/" + name, "--service-cluster", "front", "--drain-strategy", "immediate"},
	})
	return c
}

var http80 = ir.Port{Name: "http", Number: 80, Protocol: ir.HTTP}

// project puts the files there as the kubelet does, by exchanging a link.
func (c *sidecar) project(bundle string) {
	c.t.Helper()
	must := func(err error) {
		c.t.Helper()
		if err != nil {
			c.t.Fatal(err)
		}
	}
	files, err := inject.SecretFiles(c.directory)
	must(err)
	files["token"], files["ca.crt"] = c.token, bundle
	c.projected++
	current := fmt.Sprintf("..%d", c.projected)
	must(os.Mkdir(filepath.Join(c.directory, current), 0o700))
	for name, content := range files {
		must(os.WriteFile(filepath.Join(c.directory, current, name), []byte(content), 0o600))
		if c.projected == 1 {
			must(os.Symlink(filepath.Join("..data", name), filepath.Join(c.directory, name)))
		}
	}
	next := filepath.Join(c.directory, "..data_tmp")
	must(os.Symlink(current, next))
	must(os.Rename(next, filepath.Join(c.directory, "..data")))
}

// bootstrap of an injected pod, with listeners and clusters. It tells every second what it
// counts: a test does not wait for ten.
func (c *sidecar) bootstrap(address string, listeners []*listenerv3.Listener, clusters []*clusterv3.Cluster) []byte {
	c.t.Helper()
	port := func(address string) uint32 { return uint32(netip.MustParseAddrPort(address).Port()) }
	raw, err := inject.Bootstrap(inject.BootstrapConfig{
		XDSHost: "127.0.0.1", XDSPort: port(address), Directory: c.directory,
		AdminPort: port(freeport.Address(c.t)), StatusPort: port(freeport.Address(c.t)),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	var b map[string]any
	if err := json.Unmarshal([]byte(strings.Replace(string(raw), `"stats_flush_interval":"10s"`, `"stats_flush_interval":"1s"`, 1)), &b); err != nil {
		c.t.Fatal(err)
	}
	static := b["static_resources"].(map[string]any) //nolint:forcetypeassert // a bootstrap has it
	add := func(kind string, m proto.Message) {
		text, err := protojson.Marshal(m)
		if err != nil {
			c.t.Fatal(err)
		}
		static[kind] = append(static[kind].([]any), json.RawMessage(text)) //nolint:forcetypeassert // as above
	}
	for _, l := range listeners {
		add("listeners", l)
	}
	for _, of := range clusters {
		add("clusters", of)
	}
	if raw, err = json.Marshal(b); err != nil {
		c.t.Fatal(err)
	}
	return raw
}

// connected waits until it has a stream, or has none.
func (c *sidecar) connected(want bool) {
	c.t.Helper()
	poll.Until(c.t, patience, fmt.Sprintf("the proxy is connected: %t", want), func() error {
		n, err := c.Stat(c.t.Context(), "control_plane.connected_state")
		if is := n == 1; err == nil && is != want {
			err = fmt.Errorf("connected: %t", is)
		}
		return err
	})
}

// refuses says whether it has refused the server's certificate.
func (c *sidecar) refuses() bool { return strings.Contains(c.Said(), "CERTIFICATE_VERIFY_FAILED") }

// ready says of a pod that it runs, and where.
func (s *shop) ready(pod *corev1.Pod, address string) {
	s.Helper()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIP, pod.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	s.must(s.c.admin.Status().Update(s.Context(), pod))
}
