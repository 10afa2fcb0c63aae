// SPDX-License-Identifier: Apache-2.0

//go:build integration

package redirect

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// startEnvoy runs a real one in the proxy's place and as its user, with the listeners
// for redirected connections and nothing else.
func (n namespace) startEnvoy(t *testing.T) {
	t.Helper()
	static := &bootstrapv3.Bootstrap_StaticResources{Clusters: envoyxds.OutboundClusters()}
	for _, at := range []string{"127.0.0.1", "::1"} {
		static.Listeners = append(static.Listeners, envoyxds.Outbound(netip.AddrPortFrom(netip.MustParseAddr(at), inject.CapturePort)))
	}
	config, err := protojson.Marshal(&bootstrapv3.Bootstrap{StaticResources: static})
	if err != nil {
		t.Fatal(err)
	}
	// The proxy's user may not get to where it is.
	path := filepath.Join(filepath.Dir(binary), "envoy")
	if out, err := child.Bind(exec.Command("install", "-m", "0755", envoy.Binary(t), path)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := child.Bind(exec.Command(path, "--config-yaml", string(config), "--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"))
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: proxyUID, Gid: proxyUID}
	cmd.Stderr = os.Stderr
	// The process ends with the thread that started it, see package child: the thread
	// waits for the process.
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		_ = n.Do(func() error { // the test learns of the error of the start
			err := cmd.Start()
			started <- err
			if err == nil {
				_ = cmd.Wait() // that it was killed
			}
			return nil
		})
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
	})
}

func TestEnvoyPassesOnWhatItDoesNotKnow(t *testing.T) {
	w := newWorldWithoutProxy(t)
	w.pod.mustRedirect(t, arguments()...)
	if got := w.pod.reach(someone, "tcp", "198.51.100.1:80"); !strings.Contains(got, "connection refused") {
		t.Fatalf("%q without a proxy", got)
	}
	w.pod.startEnvoy(t)
	for _, to := range []string{"198.51.100.1:80", "[2001:db8:2::1]:80"} {
		poll.True(t, limit, "Envoy passes on to "+to, func() bool { return w.pod.reach(someone, "tcp", to) == "outside "+to })
	}
	w.visits(t, map[string]visit{
		"an excluded port": {someone, "tcp", "198.51.100.1:5432", "outside 198.51.100.1:5432"},
		// It would connect to itself for ever.
		"the capture port by its name": {someone, "tcp", "127.0.0.1:15001", "EOF"},
		"that port of others":          {someone, "tcp", "198.51.100.1:15001", "EOF"},
		"and it still works":           {someone, "tcp", "198.51.100.1:80", "outside 198.51.100.1:80"},
	})
}
