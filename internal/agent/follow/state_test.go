// SPDX-License-Identifier: Apache-2.0

package follow_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/agent/follow"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// service with a split, as decided by a sequence.
func service(name string, canary traffic.Weight, sequence uint64) ir.Service {
	at := func(port uint16) []ir.Endpoint {
		return []ir.Endpoint{{Address: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), port)}}
	}
	return ir.Service{
		Namespace: "shop", Name: name, Sequence: sequence, Addresses: []netip.Addr{netip.MustParseAddr(fmt.Sprintf("10.96.0.%d", len(name)))},
		Ports: []ir.Port{{Number: 80, Protocol: ir.HTTP, Slots: []ir.Slot{{Variation: "stable", Endpoints: at(8080)}, {Variation: "canary", Endpoints: at(8081)}}}},
		Routing: &traffic.Routing{
			Shares: traffic.Shares{{Variation: "stable", Weight: traffic.Total - canary}, {Variation: "canary", Weight: canary, Reserved: traffic.Total}},
			Key:    traffic.Key{Kind: traffic.ByHeader, Name: "x-user"}, Salt: "s1",
		},
	}
}

// world is a discovery server's stream and an agent's state, with a program that does as it is told.
type world struct {
	*testing.T
	now    time.Time
	view   *ads.View
	stream *ads.Stream
	state  *follow.State
	// told are the answers of the agent, and program what the program has.
	told    []string
	program []envoyxds.Port
	result  func(follow.Attempt) follow.Result
}

type proofs map[*ads.Resource]bool

func (p proofs) Proven(r *ads.Resource) bool    { return p[r] }
func (p proofs) Prove(r *ads.Resource)          { p[r] = true }
func (p proofs) Last(ads.Key) (r *ads.Resource) { return nil }

func view(t *testing.T, services ...ir.Service) *ads.View {
	t.Helper()
	resources, err := envoyxds.Resources(ir.Mesh{Services: services}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ads.NewView(resources...)
}

func newWorld(t *testing.T, services ...ir.Service) *world {
	w := &world{T: t, now: began, state: follow.New(nil, func(envoyxds.Port) error { return nil })}
	w.result = func(a follow.Attempt) follow.Result {
		w.program = a.Ports
		return follow.Result{}
	}
	w.connect(services...)
	return w
}

// connect anew.
func (w *world) connect(services ...ir.Service) {
	w.Helper()
	w.view = view(w.T, services...)
	w.stream = ads.NewStream(ads.Config{}, proofs{}, envoyxds.Missing, w.view)
	w.exchange(w.state.Begin())
	w.settle()
}

// exchange requests and responses until both sides are silent.
func (w *world) exchange(requests []follow.Request) {
	w.Helper()
	for len(requests) > 0 {
		r := requests[0]
		requests = requests[1:]
		if r.Nonce != "" {
			w.told = append(w.told, strings.TrimSpace(r.Type.String()+" "+r.Refused))
		}
		effects := w.stream.Receive(w.now, ads.Request{
			Type: r.Type, Subscribe: r.Subscribe, Unsubscribe: r.Unsubscribe, Initial: r.Initial, Nonce: r.Nonce, Refused: r.Refused != "", Message: r.Refused,
		})
		requests = append(requests, w.hear(effects)...)
	}
}

// hear what the server sends.
func (w *world) hear(effects []ads.Effect) (requests []follow.Request) {
	for _, e := range effects {
		if s, is := e.(ads.Send); is {
			requests = append(requests, w.state.Receive(w.now, follow.Response{Type: s.Type, Nonce: s.Nonce, Resources: s.Resources, Removed: s.Removed})...)
		}
	}
	return requests
}

// publish services, which the agent hears of.
func (w *world) publish(services ...ir.Service) {
	w.Helper()
	before := w.view
	w.view = view(w.T, services...)
	w.exchange(w.hear(w.stream.Publish(w.now, w.view, ads.Diff(before, w.view))))
	w.settle()
}

// settle has the program brought to what there is, until no attempt proves more.
func (w *world) settle() {
	w.Helper()
	for range 20 {
		a, answers, due := w.state.Next()
		w.exchange(answers)
		if !due {
			return
		}
		before := len(w.told)
		w.exchange(w.state.Conclude(w.now, a, w.result(a)))
		if !w.state.IsWaiting() && before == len(w.told) {
			return
		}
	}
}

// has returns the sequence of the program's split of a Service; 0 if the program has none.
func (w *world) has(service string) uint64 {
	for _, p := range w.program {
		if p.Service == service {
			return p.Sequence
		}
	}
	return 0
}

// acknowledged returns the sequence that the server knows the agent to have.
func (w *world) acknowledged(service string) uint64 {
	for _, s := range w.stream.States(func(k ads.Key) bool { return k.Type == ads.Route }) {
		if strings.Contains(s.Name, "/"+service+"|") {
			return s.Has.Sequence
		}
	}
	return 0
}

func (w *world) want(service string, has, acknowledged uint64) {
	w.Helper()
	if w.has(service) != has || w.acknowledged(service) != acknowledged {
		w.Errorf("%s: the program has sequence %d and the server knows %d, want %d and %d; told %v", service, w.has(service), w.acknowledged(service), has, acknowledged, w.told)
	}
}

func TestStepsAreAcknowledgedOnceProven(t *testing.T) {
	w := newWorld(t, service("pay", 0, 1))
	w.want("pay", 1, 1)
	w.publish(service("pay", 500, 2), service("cart", 0, 7))
	w.want("pay", 2, 2)
	w.want("cart", 7, 7)
	w.publish(service("cart", 0, 7))
	w.want("pay", 0, 0)
	w.want("cart", 7, 7)
}

func TestAProgramThatRefusesOneServiceHasTheOthers(t *testing.T) {
	w := newWorld(t, service("pay", 0, 1), service("cart", 0, 1))
	obey := w.result
	w.result = func(a follow.Attempt) follow.Result {
		if slices.ContainsFunc(a.Ports, func(p envoyxds.Port) bool { return p.Service == "pay" && p.Sequence == 2 }) {
			return follow.Result{Err: &follow.RefusedError{Said: "line 9 is none"}}
		}
		return obey(a)
	}
	w.publish(service("pay", 500, 2), service("cart", 500, 3))
	w.want("pay", 1, 1)
	w.want("cart", 3, 3)
	if !slices.Contains(w.told, "Route line 9 is none") || !w.state.HasRefused() {
		t.Errorf("told %v", w.told)
	}
	w.result = obey // a person has mended the file
	w.connect(service("pay", 500, 2), service("cart", 500, 3))
	w.want("pay", 2, 2)
}

// A proof that does not come is refused by the names of those who are late, so that the server can send
// a rollback; with the proof a new stream tells of the version.
func TestAProofThatIsLateIsToldLater(t *testing.T) {
	w := newWorld(t, service("pay", 0, 1))
	obey := w.result
	w.result = func(a follow.Attempt) follow.Result {
		w.program = a.Ports
		return follow.Result{Late: []string{"worker 7: has sequence 1"}}
	}
	w.publish(service("pay", 500, 2))
	w.want("pay", 2, 1)
	w.now = w.now.Add(20 * time.Second)
	w.settle()
	if last := w.told[len(w.told)-1]; last != "Route not proven for 15s: worker 7: has sequence 1" {
		t.Errorf("told %s", last)
	}
	w.result = obey
	w.settle()
	if !w.state.IsOutdated() {
		t.Fatal("the server does not need to know")
	}
	w.connect(service("pay", 500, 2))
	w.want("pay", 2, 2)
	if w.state.IsOutdated() {
		t.Error("the server was told")
	}
}

func TestARollbackReplacesAStepThatIsLate(t *testing.T) {
	w := newWorld(t, service("pay", 0, 1))
	obey := w.result
	w.result = func(follow.Attempt) follow.Result { return follow.Result{Err: errors.New("no answer")} }
	w.publish(service("pay", 500, 2))
	w.now = w.now.Add(20 * time.Second)
	w.settle()
	w.result = obey
	w.publish(service("pay", 0, 3))
	w.want("pay", 3, 3)
}

// What an agent held when it began is no proof of what its program does.
func TestDecidedRoutesOfBeforeAreReportedOnceProven(t *testing.T) {
	first := newWorld(t, service("pay", 500, 4))
	w := &world{T: t, now: began, state: follow.New(first.state.Held(), func(envoyxds.Port) error { return nil })}
	w.result = func(follow.Attempt) follow.Result { return follow.Result{Err: errors.New("it does not run yet")} }
	w.connect(service("pay", 500, 4))
	if n := w.acknowledged("pay"); n != 0 {
		t.Errorf("the server knows sequence %d before the first proof", n)
	}
	w.result = func(a follow.Attempt) follow.Result {
		w.program = a.Ports
		return follow.Result{}
	}
	w.settle()
	w.want("pay", 4, 4)
}

func TestAPortThatTheProgramCannotCarryOutIsRefusedAlone(t *testing.T) {
	w := newWorld(t, service("pay", 0, 1), service("cart", 0, 1))
	w.state = follow.New(nil, func(p envoyxds.Port) error {
		if p.Service == "pay" && p.Sequence == 2 {
			return errors.New("the salt has a brace")
		}
		return nil
	})
	w.connect(service("pay", 0, 1), service("cart", 0, 1))
	w.publish(service("pay", 500, 2), service("cart", 500, 2))
	w.want("pay", 1, 1)
	w.want("cart", 2, 2)
	if diff := cmp.Diff("Route the salt has a brace", w.told[slices.IndexFunc(w.told, func(s string) bool { return strings.Contains(s, "salt") })]); diff != "" {
		t.Error(diff)
	}
}
