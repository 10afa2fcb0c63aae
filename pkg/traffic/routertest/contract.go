// SPDX-License-Identifier: Apache-2.0

package routertest

import (
	"errors"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// contract are the checks of every router.
func contract() []check {
	return []check{
		{"a split that is not whole is refused", every, testNotWhole},
		{"a sequence may come twice and never goes back", every, testSequences},
		{"a split that is applied twice changes nothing", every, testTwice},
		{"no split is effective before the first one is applied", every, testNothingApplied},
		{"a removed split is forgotten", every, testForgotten},
		{"a split that requests follow is observed", asks, testObserved},
	}
}

func testNotWhole(b *bench) {
	router := b.router()
	for name, change := range map[string]func(*traffic.Split){
		"the weights are not the whole": func(s *traffic.Split) { s.Shares[0].Weight-- },
		"a variation has no pods":       func(s *traffic.Split) { s.Variations[1].Selector = nil },
		"a weight is of no variation":   func(s *traffic.Split) { s.Variations = s.Variations[:1] },
		"a header's value is of no variation either": func(s *traffic.Split) {
			s.Match = traffic.Match{Header: "x-group", Values: map[string]string{"beta": "b"}}
		},
		"no Service is named": func(s *traffic.Split) { s.Service = "" },
	} {
		split := b.split(1, 1_000)
		change(&split)
		if err := router.Validate(split); err == nil {
			b.Errorf("where %s the split is valid", name)
		}
		if err := router.Apply(b.Context(), split); err == nil {
			b.Errorf("where %s the split is applied", name)
		}
	}
}

func testSequences(b *bench) {
	router := b.router()
	b.apply(b.split(7, 1_000))
	b.apply(b.split(7, 1_000))
	for _, sequence := range []uint64{0, 6} {
		var later *traffic.LaterError
		if err := router.Apply(b.Context(), b.split(sequence, 2_000)); !errors.As(err, &later) || later.Sequence != 7 {
			b.Errorf("sequence %d after 7: got %v, want a LaterError of 7", sequence, err)
		}
	}
	b.apply(b.split(9, 3_000))
}

func testTwice(b *bench) {
	b.apply(b.split(7, traffic.Total))
	before := b.observed()
	b.apply(b.split(7, traffic.Total))
	after := b.observed()
	type told struct {
		Sequence             uint64
		Knowledge            traffic.Knowledge
		Wanted, Acknowledged int
	}
	of := func(o traffic.Observation) told { return told{o.Sequence, o.Knowledge, o.Wanted, o.Acknowledged} }
	if d := cmp.Diff(of(before), of(after)); d != "" {
		b.Errorf("the observation changes (-once +twice):\n%s", d)
	}
	if _, is := b.stand.(Asker); is {
		b.goes("a request", nil, "canary")
	}
}

func testNothingApplied(b *bench) {
	if err := b.router().Remove(b.Context()); err != nil {
		b.Errorf("removing a split that was never applied: %v", err)
	}
	b.nothingInForce()
}

func testForgotten(b *bench) {
	router := b.router()
	b.apply(b.split(7, 1_000))
	for range 2 {
		if err := router.Remove(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.settle()
		b.nothingInForce()
	}
	b.apply(b.split(1, 1_000)) // of a release that was made anew under the name
}

func testObserved(b *bench) {
	for _, sequence := range []uint64{3, 4} {
		b.apply(b.split(sequence, 1_000))
		seen, err := b.router().Observe(b.Context())
		if err != nil || seen.Sequence != sequence || seen.Knowledge != b.Capabilities.Knowledge {
			b.Errorf("sequence %d is effective, and observed is %+v, %v; want the knowledge %s", sequence, seen, err, b.Capabilities.Knowledge)
		}
	}
}

func (b *bench) nothingInForce() {
	b.Helper()
	seen, err := b.router().Observe(b.Context())
	if err == nil && (seen.Sequence != 0 || seen.Knowledge == traffic.Proven || seen.Knowledge == traffic.Accepted) {
		b.Errorf("no split is applied, and effective is %+v", seen)
	}
}
