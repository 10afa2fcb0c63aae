// SPDX-License-Identifier: Apache-2.0

//go:build integration

package nginx

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	connector "github.com/plumbline-dev/plumbline/internal/connector/nginx"
	"github.com/plumbline-dev/plumbline/internal/connector/nginx/carry"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/nginx"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// patience bounds every wait.
const patience = 30 * time.Second

// keepaliveMin is short, so that a proof waits a second for connections that are idle.
const keepaliveMin = time.Second

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// writeUser writes the configuration of a user into the folder of ours: one server at an address if it
// is not "", and more directives of the http block.
func writeUser(t testing.TB, folder, address, more string) string {
	t.Helper()
	server := ""
	if address != "" {
		server = fmt.Sprintf(`
server {
  listen %s;
  location / {
    proxy_pass http://$plb_shop_web;
    proxy_http_version 1.1;
    proxy_set_header Host $host;
    proxy_set_header Connection $to_upgrade;
    proxy_set_header Upgrade $http_upgrade;
  }
}`, address)
	}
	user := filepath.Join(folder, "nginx.conf")
	must(t, os.WriteFile(user, fmt.Appendf(nil, `worker_processes 2;
pid %[1]s/nginx.pid;
error_log stderr notice;
include %[1]s/main.conf;
events {
  worker_connections 512;
}
http {
  map $http_upgrade $to_upgrade {
    default upgrade;
    "" "";
  }
  include %[1]s/plumbline.conf;%[2]s%[3]s
}
`, folder, server, more), 0o600))
	return user
}

// stand is an nginx whose user sends all requests to port 80 of Service shop/web.
type stand struct {
	testing.TB
	folder, address, user string
	program               *nginx.Program
	lines                 *carry.Lines
	carrier               *carry.Carrier
}

// newStand starts one that carries a Service out.
func newStand(t testing.TB, s ir.Service) *stand {
	t.Helper()
	folder, err := os.MkdirTemp("", "nginx") //nolint:usetesting // the path of a socket has at most 107 bytes
	must(t, err)
	must(t, os.Chmod(folder, 0o755)) //nolint:gosec // workers are another user
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	st := &stand{TB: t, folder: folder, address: freeport.Address(t)}
	st.user = writeUser(t, folder, st.address, "")
	files, err := connector.Render(st.options(), st.ports(s))
	must(t, err)
	for name, content := range map[string][]byte{connector.MainFile: files.Main, connector.ConfigFile: files.Config, connector.RequestFile: files.Request} {
		must(t, os.WriteFile(st.file(name), content, 0o600))
	}
	st.lines, err = carry.Listen(st.file(connector.LogSocket))
	must(t, err)
	t.Cleanup(func() { must(t, st.lines.Close()) })
	st.start()
	st.carryOut(s)
	return st
}

// start has an nginx load the files, of which a carrier knows nothing.
func (st *stand) start() {
	st.Helper()
	st.program = nginx.Start(st, st.user)
	st.carrier = carry.New(carry.Config{
		Options: st.options(), Binary: nginx.Binary(st), User: st.user, Arguments: []string{"-p", st.folder},
		PIDFile: st.file("nginx.pid"), Lines: st.lines,
	})
}

func (st *stand) options() connector.Options {
	return connector.Options{Folder: st.folder, KeepaliveMin: keepaliveMin, Shutdown: time.Minute}
}

func (st *stand) file(name string) string { return filepath.Join(st.folder, name) }

// ports are what nginx is told of a Service: by our own resources, and read back from these.
func (st *stand) ports(s ir.Service) []envoyxds.Port {
	st.Helper()
	s.Namespace, s.Name = "shop", "web"
	resources, err := envoyxds.Resources(ir.Mesh{Services: []ir.Service{s}}, nil)
	must(st, err)
	ports, refused := envoyxds.ReadPorts(ads.NewView(resources...))
	if len(refused) > 0 {
		st.Fatalf("%v is refused: %v", refused[0].Key, refused[0].Err)
	}
	return ports
}

// carryOut brings the program to a Service, and waits for the proof.
func (st *stand) carryOut(s ir.Service) {
	st.Helper()
	poll.Until(st, patience, "the split is proven", func() error {
		late, err := st.carrier.CarryOut(st.Context(), st.ports(s))
		if err == nil && len(late) > 0 {
			err = fmt.Errorf("late: %v", late)
		}
		return err
	})
}

// late are the reasons why a Service is not proven.
func (st *stand) late(s ir.Service) []connector.OutOfSync {
	st.Helper()
	late, err := st.carrier.CarryOut(st.Context(), st.ports(s))
	must(st, err)
	return late
}

// split between variations in the order stable, canary, of which the canary has so much.
func split(key traffic.Key, canary traffic.Weight, sequence uint64, stableAt, canaryAt string) ir.Service {
	slot := func(variation, address string) ir.Slot {
		return ir.Slot{Variation: variation, Endpoints: []ir.Endpoint{{Address: netip.MustParseAddrPort(address)}}}
	}
	return ir.Service{
		Sequence: sequence,
		Ports:    []ir.Port{{Number: 80, Protocol: ir.HTTP, Slots: []ir.Slot{slot("stable", stableAt), slot("canary", canaryAt)}}},
		Routing: &traffic.Routing{
			Shares: traffic.Shares{{Variation: "stable", Weight: traffic.Total - canary}, {Variation: "canary", Weight: canary, Reserved: traffic.Total}},
			Key:    key, Salt: "s1",
		},
	}
}

// upstream answers with its name.
func upstream(t testing.TB, name string, delay time.Duration) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // the client is gone
		}
		if delay > 0 {
			<-time.After(delay)
		}
		w.Header().Set("Variation", name)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// client keeps one connection.
type client struct{ http.Client }

func newClient() *client {
	return &client{http.Client{Transport: &http.Transport{
		MaxConnsPerHost: 1,
		DialContext:     new(net.Dialer).DialContext,
	}}}
}

// ask sends one POST; headers come in pairs. The body cannot be sent twice, so a connection that is closed
// under it is an error.
func (c *client) ask(t testing.TB, address string, headers ...string) (variation string, header http.Header, err error) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/", io.NopCloser(strings.NewReader("a body")))
	if err != nil {
		return "", nil, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	response, err := c.Do(r)
	if err != nil {
		return "", nil, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if closing := response.Body.Close(); err == nil {
		err = closing
	}
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("answered %d", response.StatusCode)
	}
	return response.Header.Get("Variation"), response.Header, err
}
