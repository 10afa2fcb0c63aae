// SPDX-License-Identifier: Apache-2.0

//go:build integration

package nginx

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	connector "github.com/plumbline-dev/plumbline/internal/connector/nginx"
	"github.com/plumbline-dev/plumbline/internal/connector/nginx/carry"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/nginx"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/portset"
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

// configure writes the configuration of a user, whose files of ours are in a folder: one server at an address if it
// is not "", and more directives of the http block. The PID file is beside the configuration.
func configure(home, folder, address, more string) string {
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
	return fmt.Sprintf(`worker_processes 2;
pid %[1]s/nginx.pid;
error_log stderr notice;
include %[2]s/main.conf;
events {
  worker_connections 512;
}
http {
  map $http_upgrade $to_upgrade {
    default upgrade;
    "" "";
  }
  include %[2]s/plumbline.conf;%[3]s%[4]s
}
`, home, folder, server, more)
}

// writeUser writes the configuration of a user into the folder of ours.
func writeUser(t testing.TB, folder, address, more string) string {
	t.Helper()
	user := filepath.Join(folder, "nginx.conf")
	must(t, os.WriteFile(user, []byte(configure(folder, folder, address, more)), 0o600))
	return user
}

// stand is an nginx whose user sends all requests to port 80 of Service shop/web.
type stand struct {
	testing.TB
	folder, address, user string
	log                   netip.AddrPort
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
	st := &stand{TB: t, folder: folder, address: freeport.Address(t), log: netip.MustParseAddrPort(freeport.Address(t))}
	st.user = writeUser(t, folder, st.address, "")
	files, err := connector.Render(st.options(), portset.ReadBack(st, s))
	must(t, err)
	for name, content := range map[string][]byte{connector.MainFile: files.Main, connector.ConfigFile: files.Config, connector.RequestFile: files.Request} {
		must(t, os.WriteFile(st.file(name), content, 0o600))
	}
	st.lines, err = carry.Listen(st.log)
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
		Master: st.master, Lines: st.lines,
	})
}

func (st *stand) master() (int, error) { return carry.ReadPID(st.file("nginx.pid")) }

func (st *stand) options() connector.Options {
	return connector.Options{Folder: st.folder, LogAddress: st.log, KeepaliveMin: keepaliveMin, Shutdown: time.Minute}
}

func (st *stand) file(name string) string { return filepath.Join(st.folder, name) }

// carryOut brings the program to a Service, and waits for the proof.
func (st *stand) carryOut(s ir.Service) {
	st.Helper()
	poll.Until(st, patience, "the split is proven", func() error {
		late, err := st.carrier.CarryOut(st.Context(), portset.ReadBack(st, s))
		if err == nil && len(late) > 0 {
			err = fmt.Errorf("late: %v", late)
		}
		return err
	})
}

// late are the reasons why a Service is not proven.
func (st *stand) late(s ir.Service) []connector.OutOfSync {
	st.Helper()
	late, err := st.carrier.CarryOut(st.Context(), portset.ReadBack(st, s))
	must(st, err)
	return late
}
