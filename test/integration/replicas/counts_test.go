// SPDX-License-Identifier: Apache-2.0

//go:build integration

package replicas

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/proxypod"
	"github.com/plumbline-dev/plumbline/test/harness/relay"
)

// The only proxy is that of another replica, which the leader has its counts from.
func TestTheLeaderKnowsWhatProxiesOfAnotherReplicaCount(t *testing.T) {
	w := newWorld(t)
	front := w.counting("front-0", w.other)
	router := w.decide(1, 5000)
	w.seen(router, "it is acknowledged", proven(1, 1))
	w.seen(router, "both variations are counted", func(s traffic.Observation) bool {
		w.answers(front, "a", 10)
		counted := completed(s)
		return counted["stable"] > 0 && counted["canary"] > 0
	})

	// What a decision has brought about is counted from it on. What was asked before
	// is told by then: no proxy and no replica is silent for four seconds.
	var told map[string]uint64
	still := time.Now()
	w.seen(router, "all that was asked is told", func(s traffic.Observation) bool {
		if now := completed(s); !cmp.Equal(now, told) {
			told, still = now, time.Now()
		}
		return time.Since(still) > 4*time.Second
	})
	router = w.decide(2, 3000)
	decided := time.Now()
	w.seen(router, "the next one is acknowledged", proven(2, 1))
	w.seen(router, "counting has begun anew", func(s traffic.Observation) bool {
		for _, arm := range s.Arms {
			if arm.Outcomes == nil || arm.Outcomes.Window >= time.Since(decided) {
				return false
			}
		}
		return cmp.Equal(completed(s), map[string]uint64{"stable": 0, "canary": 0})
	})
	want := w.answers(front, "b", 200)
	if want["stable"] == 0 || want["canary"] == 0 {
		t.Fatalf("the answers are %v", want)
	}
	w.seen(router, fmt.Sprint("the leader knows of ", want), func(s traffic.Observation) bool {
		return cmp.Equal(completed(s), want)
	})
}

// completed requests of each variation; empty as long as nothing is known.
func completed(s traffic.Observation) map[string]uint64 {
	counted := map[string]uint64{}
	for _, arm := range s.Arms {
		if arm.Outcomes != nil {
			counted[arm.Variation] = arm.Outcomes.Completed
		}
	}
	return counted
}

// answers to n users by variation.
func (w *world) answers(address, prefix string, n int) map[string]uint64 {
	w.t.Helper()
	got := map[string]uint64{}
	for i := range n {
		request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://"+address+"/", http.NoBody)
		w.must(err)
		request.Header.Set("X-User", fmt.Sprint(prefix, i))
		response, err := http.DefaultClient.Do(request)
		w.must(err)
		body, err := io.ReadAll(response.Body)
		w.must(errors.Join(err, response.Body.Close()))
		if response.StatusCode != http.StatusOK {
			w.t.Fatalf("it is answered %d %s", response.StatusCode, body)
		}
		got[string(body)]++
	}
	return got
}

// counting is a sidecar with the bootstrap of an injected pod, which tells every second
// what it counts. The result is its local port for the service.
func (w *world) counting(name string, r *replica) (front string) {
	w.t.Helper()
	meta := named(w.shop, name)
	meta.Labels = map[string]string{inject.LabelProxy: string(inject.Redirect)}
	pod, directory := w.pod(meta, "front", proxypod.Address), w.t.TempDir()
	files, err := inject.SecretFiles(directory)
	w.must(err)
	files["token"], files["ca.crt"] = w.token(pod, identity.Audience), string(w.authority)
	for file, content := range files {
		w.must(os.WriteFile(filepath.Join(directory, file), []byte(content), 0o600))
	}
	replica, at := netip.MustParseAddrPort(relay.Start(w.t, r.address).Address), netip.MustParseAddrPort(freeport.Address(w.t))
	raw, err := inject.Bootstrap(inject.BootstrapConfig{
		XDSHost: replica.Addr().String(), XDSPort: uint32(replica.Port()), Directory: directory,
		AdminPort: uint32(netip.MustParseAddrPort(freeport.Address(w.t)).Port()), StatusPort: uint32(netip.MustParseAddrPort(freeport.Address(w.t)).Port()),
	})
	w.must(err)
	listener, err := protojson.Marshal(envoyxds.Local(ir.Service{Namespace: w.shop, Name: "web"}, ir.Port{Name: "http", Number: 80, Protocol: ir.HTTP}, at))
	w.must(err)
	envoy.Start(w.t, envoy.Options{
		Bootstrap: w.withListener(raw, listener), Arguments: []string{"--service-node", w.shop + "/" + name, "--service-cluster", "front"},
	})
	return at.String()
}

// withListener adds one to a bootstrap, and has it tell its counts every second.
func (w *world) withListener(raw []byte, listener json.RawMessage) []byte {
	w.t.Helper()
	var b map[string]any
	w.must(json.Unmarshal([]byte(strings.Replace(string(raw), `"stats_flush_interval":"10s"`, `"stats_flush_interval":"1s"`, 1)), &b))
	static := b["static_resources"].(map[string]any)                    //nolint:forcetypeassert // a bootstrap has it
	static["listeners"] = append(static["listeners"].([]any), listener) //nolint:forcetypeassert // as above
	raw, err := json.Marshal(b)
	w.must(err)
	return raw
}
