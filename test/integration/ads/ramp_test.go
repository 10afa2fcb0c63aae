// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// ramp is a split whose share grows step by step.
type ramp struct {
	*mesh
	front          string
	key            traffic.Key
	stable, canary string
	step           uint64
}

func newRamp(t testing.TB, key traffic.Key) *ramp {
	r := &ramp{mesh: newMesh(t), key: key, stable: terse(t, "stable"), canary: terse(t, "canary")}
	r.serves(r.at(0))
	_, fronts := r.sidecar("web-0", r.at(0))
	r.front = fronts[0]
	eventually(t, "the proxy serves", func() error {
		if _, code := answers(t, r.front); code != 200 {
			return fmt.Errorf("%d", code)
		}
		return nil
	})
	return r
}

// at is the service with this share, in which a header says which step it is.
func (r *ramp) at(canary traffic.Weight) ir.Service {
	routing := &traffic.Routing{
		Shares: traffic.Shares{{Variation: "stable", Weight: traffic.Total - canary}, {Variation: "canary", Weight: canary, Reserved: traffic.Total}},
		Key:    r.key, Salt: "release-1",
		Match: traffic.Match{Header: "x-step", Values: map[string]string{fmt.Sprint(r.step): "canary"}},
	}
	s := service("web", routing, slotOf("stable", r.stable), slotOf("canary", r.canary))
	s.Sequence = r.step
	return s
}

// goesTo another share. What a proxy acknowledges its workers take a moment later: each
// connection waits until its own has it.
func (r *ramp) goesTo(canary traffic.Weight) (ready func(line) error) {
	r.t.Helper()
	r.step++
	r.serves(r.at(canary))
	r.has("web-0", ads.Route, routeOfService("web"))
	step := fmt.Sprint("x-step: ", r.step)
	return func(l line) error {
		var last reply
		for begin := time.Now(); time.Since(begin) < patience; {
			replies, err := l.asks([]string{step})
			if err != nil || replies[0].variation == "canary" {
				return err
			}
			last = replies[0]
		}
		return fmt.Errorf("waited %s until the worker of a connection has step %d; last seen: %+v", patience, r.step, last)
	}
}

// onCanary says who of some is there; those who were there before and are no longer
// have been moved back.
func (r *ramp) onCanary(replies []reply, before map[int]bool, what string) map[int]bool {
	r.t.Helper()
	now, back := map[int]bool{}, 0
	for i, reply := range replies {
		if reply.variation == "canary" {
			now[i] = true
		} else if before[i] {
			back++
		}
	}
	if back > 0 {
		r.t.Errorf("%s: %d of %d are moved back", what, back, len(before))
	}
	return now
}

var steps = []traffic.Weight{100, 500, 2_500, 5_000, 10_000}

const visitors = 10_000

func percent(w traffic.Weight) string { return fmt.Sprint(w/100, " %") }

func TestTenThousandUsersAreNeverMovedBackWhileAShareGrows(t *testing.T) {
	r := newRamp(t, traffic.Key{Kind: traffic.ByHeader, Name: "x-user"})
	users := make([]string, visitors)
	for i := range users {
		users[i] = fmt.Sprint("x-user: user-", i)
	}
	if none := r.onCanary(census(t, r.front, users, r.goesTo(0)), nil, "before"); len(none) > 0 {
		t.Errorf("%d are on a canary without a share", len(none))
	}
	var canary map[int]bool
	for _, w := range steps {
		canary = r.onCanary(census(t, r.front, users, r.goesTo(w)), canary, percent(w))
		drawn(t, percent(w), len(canary), visitors, float64(w)/float64(traffic.Total))
	}
	if left := r.onCanary(census(t, r.front, users, r.goesTo(0)), nil, "the rollback"); len(left) > 0 {
		t.Errorf("after the rollback %d are still on the canary", len(left))
	}
}

// A fifth of them comes for the first time at each step.
func TestTenThousandAnonymousVisitorsKeepTheirVariationWhileAShareGrows(t *testing.T) {
	rotation.Share(t, 3)
	r := newRamp(t, traffic.Key{Kind: traffic.ByVisitor, Name: "visitor"})
	var cookies []string
	canary, known := map[int]bool{}, map[string]bool{}
	for _, w := range steps {
		ready := r.goesTo(w)
		strangers := census(t, r.front, make([]string, visitors/len(steps)), ready)
		first := len(cookies)
		for i, s := range strangers {
			if !strings.HasPrefix(s.cookie, "visitor=") || known[s.cookie] {
				t.Fatalf("a stranger gets the cookie %q", s.cookie)
			}
			known[s.cookie] = true
			cookies = append(cookies, "cookie: theme=dark; "+s.cookie)
			if s.variation == "canary" {
				canary[first+i] = true
			}
		}
		now := census(t, r.front, cookies, ready)
		for i, s := range strangers {
			if now[first+i].variation != s.variation {
				t.Errorf("visitor %d goes to %s first and to %s then", first+i, s.variation, now[first+i].variation)
			}
		}
		canary = r.onCanary(now, canary, percent(w))
		drawn(t, percent(w), len(canary), len(cookies), float64(w)/float64(traffic.Total))
	}
	if len(cookies) != visitors {
		t.Errorf("%d visitors", len(cookies))
	}
	if left := r.onCanary(census(t, r.front, cookies, r.goesTo(0)), nil, "the rollback"); len(left) > 0 {
		t.Errorf("after the rollback %d are still on the canary", len(left))
	}
}
