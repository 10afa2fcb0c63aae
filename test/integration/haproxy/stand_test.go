// SPDX-License-Identifier: Apache-2.0

//go:build integration

package haproxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	connector "github.com/plumbline-dev/plumbline/internal/connector/haproxy"
	"github.com/plumbline-dev/plumbline/internal/connector/haproxy/carry"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/haproxy"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/portset"
)

// patience bounds every wait.
const patience = 20 * time.Second

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stand is a HAProxy whose user sends all requests to port 80 of Service shop/web.
type stand struct {
	testing.TB
	folder, address string
	program         *haproxy.Program
	carrier         *carry.Carrier
}

// configure writes the configuration of a user with a frontend, which binds to an address, and more sections.
func configure(bind, sections string) string {
	return fmt.Sprintf(`defaults
  mode http
  timeout connect 1s
  timeout client 60s
  timeout server 60s
frontend web
  bind %s
  use_backend plb_shop_web
%s`, bind, sections)
}

// newStand starts one that carries a Service out, with more sections of the user.
func newStand(t testing.TB, s ir.Service, sections ...string) *stand {
	t.Helper()
	st := &stand{TB: t, folder: t.TempDir(), address: freeport.Address(t)}
	suffix := ""
	if s.Ports[0].Protocol == ir.HTTP2 {
		suffix = " proto h2"
	}
	must(t, os.WriteFile(st.file("user.cfg"), []byte(configure(st.address+suffix, strings.Join(sections, ""))), 0o600))
	ports := portset.ReadBack(st, s)
	files, err := connector.Render(st.options(), ports, connector.PlaceArms(nil, ports, func(connector.Server) bool { return false }))
	must(t, err)
	for name, content := range map[string][]byte{connector.ConfigFile: files.Config, connector.SplitsFile: files.Splits, connector.MatchesFile: files.Matches} {
		must(t, os.WriteFile(st.file(name), content, 0o600))
	}
	st.start()
	st.carryOut(s) // so that the carrier knows the program
	return st
}

// start has a HAProxy load the files, of which a carrier knows nothing.
func (st *stand) start() {
	st.Helper()
	st.program = haproxy.Start(st, st.file("user.cfg"), st.file(connector.ConfigFile))
	st.carrier = carry.New(carry.Config{Options: st.options(), Binary: haproxy.Binary(st), User: []string{st.file("user.cfg")}, Master: st.program.Master})
}

func (st *stand) options() connector.Options {
	_, port, _ := strings.Cut(st.address, ":") // tells the sockets of tests apart that run at the same time
	return connector.Options{Folder: st.folder, Instance: port}
}

func (st *stand) file(name string) string { return filepath.Join(st.folder, name) }

// carryOut brings the program to a Service, and waits for the proof: a worker of before a reload that is
// about to end may not answer.
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

func (st *stand) splits() connector.Program {
	return connector.Program{Master: st.program.Master, Splits: st.file(connector.SplitsFile)}
}

func (st *stand) prove(s ir.Service) []connector.OutOfSync {
	st.Helper()
	late, err := st.splits().Prove(st.Context(), connector.Entries(portset.ReadBack(st, s)))
	must(st, err)
	return late
}

// counts of the present worker.
func (st *stand) counts() connector.Snapshot {
	st.Helper()
	worker := st.program.Worker()
	info, err := worker.Info(st.Context())
	must(st, err)
	stats, err := worker.Stats(st.Context())
	must(st, err)
	return connector.SnapshotOf(info, stats)
}

// web has one port and these slots.
func web(routing *traffic.Routing, slots ...ir.Slot) ir.Service {
	return ir.Service{Sequence: 1, Ports: []ir.Port{{Number: 80, Protocol: ir.HTTP, Slots: slots}}, Routing: routing}
}

func slot(variation string, addresses ...string) ir.Slot {
	s := ir.Slot{Variation: variation}
	for _, address := range addresses {
		s.Endpoints = append(s.Endpoints, ir.Endpoint{Address: netip.MustParseAddrPort(address)})
	}
	return s
}

// forced has requests go by headers too.
func forced(s ir.Service) ir.Service {
	s.Routing.Override = "x-variation"
	s.Routing.Match = traffic.Match{Header: "x-group", Values: map[string]string{"beta": "canary", "a 'b' $HOME #c": "canary", "staff": "stable"}}
	return s
}

// arm is the variation of a visitor's bucket: xxHash64 of salt, | and value, modulo the total.
func arm(r *traffic.Routing, visitor string) string {
	bucket := traffic.Weight(xxhash.Sum64String(r.Salt+"|"+visitor) % uint64(traffic.Total)) //nolint:gosec // below the total
	for _, s := range r.Shares.Layout() {
		if bucket < s.Weight {
			return s.Variation
		}
		bucket -= s.Weight
	}
	return ""
}

// hang is an upstream that answers when it is released.
func hang(t testing.TB, release <-chan struct{}) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		w.Header().Set("Variation", "stable")
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}
