// SPDX-License-Identifier: Apache-2.0

package routertest

import "github.com/plumbline-dev/plumbline/pkg/traffic"

// faults are the checks of routers whose program fails, or goes past its router.
func faults() []check {
	faulty := func(_ Maker, s Stand) bool {
		_, is := s.(Faulty)
		return is
	}
	ordered := func(m Maker, s Stand) bool {
		_, is := s.(Orderer)
		return is && m.Capabilities.RollbackWithoutAPIServer
	}
	return []check{
		{"a split that a hung program never took is not proven", faulty, testHung},
		{"a removal that a hung program never took is repeated", faulty, testRemovedHung},
		{"after a restart a split is proven only if requests follow it", faulty, testRestarted},
		{"an edit by hand ends the proof, and the split is restored", faulty, testEdited},
		{"a prepared rollback that came past the API server stays, and is known", ordered, testOrdered},
	}
}

func (b *bench) faulty() Faulty {
	return b.stand.(Faulty) //nolint:forcetypeassert // the check fits Faulty alone
}

// honest demands that requests go to the canary if the router says that the sequence of a split with all of them
// there is proven.
func (b *bench) honest(after string, sequence uint64) {
	b.Helper()
	if b.proven(sequence) {
		if to := b.ask(nil, nil).Variation.Name; to != "canary" {
			b.Errorf("after %s sequence %d is proven, and a request goes to %q", after, sequence, to)
		}
	}
}

// returns applies a split again, as each look does, and demands that requests follow it and that the router knows.
func (b *bench) returns(split traffic.Split, to string) {
	b.Helper()
	b.apply(split)
	if counts := b.tally(); counts[to] != crowd {
		b.Errorf("requests go to %v, want all at %s", counts, to)
	}
	if seen := b.observed(); seen.Sequence != split.Sequence || seen.Knowledge != b.Capabilities.Knowledge {
		b.Errorf("sequence %d is back, and observed is %+v", split.Sequence, seen)
	}
}

func testHung(b *bench) {
	b.apply(b.split(1, 0))
	b.faulty().Hang()
	_ = b.router().Apply(b.Context(), b.split(2, traffic.Total)) // the router may know that its program hangs
	if b.proven(2) {
		b.Error("the program hangs, and its split is proven")
	}
	b.faulty().Resume()
	b.honest("a pause", 2)
	b.returns(b.split(2, traffic.Total), "canary")
}

func testRemovedHung(b *bench) {
	b.apply(b.split(1, traffic.Total))
	b.faulty().Hang()
	err := b.router().Remove(b.Context())
	b.faulty().Resume()
	if err != nil {
		err = b.router().Remove(b.Context())
	}
	if err != nil {
		b.Fatalf("removing a split again: %v", err)
	}
	b.settle()
	b.undivided(web)
}

func testRestarted(b *bench) {
	b.apply(b.split(1, traffic.Total))
	b.faulty().Restart()
	b.honest("a restart", 1)
	b.returns(b.split(1, traffic.Total), "canary")
}

func testEdited(b *bench) {
	b.apply(b.split(1, traffic.Total))
	b.faulty().Edit(release)
	b.honest("an edit", 1)
	b.returns(b.split(1, traffic.Total), "canary")
}

func testOrdered(b *bench) {
	b.apply(b.split(1, traffic.Total))
	rollback := b.split(2, 0)
	b.stand.(Orderer).Order(rollback) //nolint:forcetypeassert // the check fits Orderers alone
	b.settle()
	if seen := b.observed(); seen.Ahead != 2 || seen.Knowledge == traffic.Proven || seen.Knowledge == traffic.Accepted {
		b.Errorf("a rollback with sequence 2 came past the router, and observed is %+v", seen)
	}
	_ = b.router().Apply(b.Context(), b.split(1, traffic.Total)) // by a leader that does not know of the rollback
	b.settle()
	b.goes("a request after the rollback", nil, "stable")
	b.returns(rollback, "stable")
}
