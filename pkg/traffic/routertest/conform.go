// SPDX-License-Identifier: Apache-2.0

package routertest

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// check is one promise of the suite.
type check struct {
	name string
	// fits says whether a stand can show the promise.
	fits func(Maker, Stand) bool
	run  func(*bench)
}

// Conform runs each check that fits the routers of a Maker.
func Conform(t *testing.T, m Maker) {
	sample := m.Begin(t)
	for _, c := range checks() {
		if c.fits(m, sample) {
			t.Run(c.name, func(t *testing.T) { c.run(&bench{TB: t, Maker: m, stand: m.Begin(t)}) })
		}
	}
}

func checks() []check {
	return slices.Concat(contract(), refusals(), shares(), cohorts(), headers(), scopes(), counts(), faults())
}

func every(Maker, Stand) bool { return true }

func asks(_ Maker, s Stand) bool {
	_, is := s.(Asker)
	return is
}

// asksWith fits an Asker whose routers have a capability.
func asksWith(has func(traffic.Capabilities) bool) func(Maker, Stand) bool {
	return func(m Maker, s Stand) bool { return asks(m, s) && has(m.Capabilities) }
}

// bench is a check that runs.
type bench struct {
	testing.TB
	Maker
	stand Stand
}

var (
	release = types.NamespacedName{Namespace: "shop", Name: "autumn"}
	web     = types.NamespacedName{Namespace: "shop", Name: "web"}
)

// Split returns a split of Service shop/web between pods with the labels version=stable and
// version=canary, of which the canary gets so much. Users are known by the header x-user.
func Split(sequence uint64, canary traffic.Weight) traffic.Split {
	selected := func(version string) traffic.Variation {
		return traffic.Variation{Name: version, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"version": version}}}
	}
	return traffic.Split{
		Namespace: release.Namespace, Name: release.Name, Service: web.Name, Sequence: sequence,
		Variations: []traffic.Variation{selected("stable"), selected("canary")},
		Routing: traffic.Routing{
			Shares: traffic.Shares{{Variation: "stable", Weight: traffic.Total - canary}, {Variation: "canary", Weight: canary, Reserved: traffic.Total}},
			Key:    traffic.Key{Kind: traffic.ByHeader, Name: "x-user"}, Salt: "salt",
		},
	}
}

// split is that of [Split] as far as the routers can carry it out: without Sticky no user is known.
func (b *bench) split(sequence uint64, canary traffic.Weight) traffic.Split {
	s := Split(sequence, canary)
	if !b.Capabilities.Sticky {
		s.Key = traffic.Key{}
	}
	return s
}

func (b *bench) router() traffic.Router { return b.stand.Router(release) }

func (b *bench) apply(split traffic.Split) {
	b.Helper()
	router := b.stand.Router(types.NamespacedName{Namespace: split.Namespace, Name: split.Name})
	if err := router.Validate(split); err != nil {
		b.Fatalf("a split that is valid is refused: %v", err)
	}
	if err := router.Apply(b.Context(), split); err != nil {
		b.Fatal(err)
	}
	b.settle()
}

func (b *bench) settle() {
	b.Helper()
	if s, is := b.stand.(Settler); is {
		s.Settle()
	}
}

// observed returns what the router knows; an error counts as an observation that nothing is known.
func (b *bench) observed() traffic.Observation {
	b.Helper()
	seen, err := b.router().Observe(b.Context())
	if err != nil {
		return traffic.Observation{Knowledge: traffic.Unknown}
	}
	return seen
}

// proven tells whether the router says that a sequence is in force.
func (b *bench) proven(sequence uint64) bool {
	b.Helper()
	seen := b.observed()
	return seen.Knowledge == traffic.Proven && seen.Sequence >= sequence
}

// ask for a request to Service web.
func (b *bench) ask(headers, cookies map[string]string) Answer {
	b.Helper()
	return b.askFor(Request{Service: web, Headers: headers, Cookies: cookies})
}

func (b *bench) askFor(request Request) Answer {
	b.Helper()
	answer, err := b.stand.(Asker).Ask(request) //nolint:forcetypeassert // the check fits Askers alone
	if err != nil {
		b.Fatal(err)
	}
	return answer
}

// goes demands where a request to Service web goes.
func (b *bench) goes(what string, headers map[string]string, want string) {
	b.Helper()
	if got := b.ask(headers, nil); !got.Divided || got.Variation.Name != want {
		b.Errorf("%s goes to %q, want %s", what, got.Variation.Name, want)
	}
}
