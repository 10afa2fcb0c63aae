// SPDX-License-Identifier: Apache-2.0

package redisguard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

// The fields of a copy. It holds what the gates look at and nothing else: neither
// names of objects nor of plans.
//
//	sequence            of the ledger
//	grants-from         before when the ledger grants nothing; absent when it may
//	breakers            how many there are
//	open, ended         of all entries: how many have not ended, and when the others did
//	open/U, ended/U     the same of the policy with the uid U
//	breaker/U           its breaker: closed, probing, stuck, or since when it is open
//	target/U            of the object with the uid U: "written", or when that ended last
//	step/U/N            exists when step N of the plan with the uid U has an entry
//
// Times are seconds since 1970. In "ended" they stand in ascending order, with
// timeWidth digits each, so that a script finds its place without reading all.
const timeWidth = 12

// States of a breaker that are no time.
const (
	breakerClosed  = "closed"
	breakerProbing = "probing"
	// breakerStuck is one whose state nobody knows; the ledger refuses it too.
	breakerStuck = "stuck"
	// targetWritten: a step that has not ended writes the target.
	targetWritten = "written"
)

// key is the copy's. The braces make it, and whatever may once lie beside it, one
// slot of a Redis cluster.
func key(prefix, name, uid string) string { return prefix + ":mirror:{" + name + "/" + uid + "}" }

func stepField(s ledger.Step) string { return s.PlanUID + "/" + strconv.Itoa(int(s.Step)) }

// seconds is a time as the API server stores it. What lies before 1970 is as long
// ago as any limit cares.
func seconds(t metav1.Time) int64 { return max(0, t.Unix()) }

// group is what is known of some entries together.
type group struct {
	open  int
	ended []int64
}

func (g *group) add(e *v1alpha1.LedgerEntry) {
	if e.CompletionTime == nil {
		g.open++
		return
	}
	g.ended = append(g.ended, seconds(*e.CompletionTime))
}

func (g *group) times() string {
	slices.Sort(g.ended)
	var b strings.Builder
	for _, t := range g.ended {
		fmt.Fprintf(&b, "%0*d", timeWidth, t)
	}
	return b.String()
}

// fields are a copy as HSET takes it. The sequence comes last: a copy that was
// begun and not finished has none.
func fields(s *ledger.Status) []any {
	var f []any
	set := func(name, value string) { f = append(f, name, value) }
	if s.GrantStartTime != nil {
		set("grants-from", strconv.FormatInt(seconds(*s.GrantStartTime), 10))
	}
	all, policies := group{}, map[string]*group{}
	targets := map[string]string{}
	for i := range s.Entries {
		e := &s.Entries[i]
		set("step/"+stepField(e.StepReference), "1")
		all.add(e)
		if policies[e.PolicyUID] == nil {
			policies[e.PolicyUID] = &group{}
		}
		policies[e.PolicyUID].add(e)
		targets[e.TargetUID] = later(targets[e.TargetUID], e.CompletionTime)
	}
	set("open", strconv.Itoa(all.open))
	set("ended", all.times())
	for uid, g := range policies {
		set("open/"+uid, strconv.Itoa(g.open))
		set("ended/"+uid, g.times())
	}
	for uid, last := range targets {
		set("target/"+uid, last)
	}
	set("breakers", strconv.Itoa(len(s.Breakers)))
	// The ledger goes by the first of a policy, should there be two.
	for i := range slices.Backward(s.Breakers) {
		set("breaker/"+s.Breakers[i].PolicyUID, breaker(s, &s.Breakers[i]))
	}
	set("sequence", strconv.FormatInt(s.Sequence, 10))
	return f
}

// later is the later of what is known of a target and another end.
func later(known string, ended *metav1.Time) string {
	if known == targetWritten || ended == nil {
		return targetWritten
	}
	return max(known, fmt.Sprintf("%0*d", timeWidth, seconds(*ended)))
}

func breaker(s *ledger.Status, b *v1alpha1.LedgerBreaker) string {
	switch ledger.StateOf(s, b) {
	case v1alpha1.BreakerClosed:
		return breakerClosed
	case v1alpha1.BreakerHalfOpen:
		if b.VerdictDeadlineTime != nil { // without a verdict it is open from then on
			return strconv.FormatInt(seconds(*b.VerdictDeadlineTime), 10)
		}
		return breakerProbing
	case v1alpha1.BreakerOpen:
		if b.LastOpenTime != nil {
			return strconv.FormatInt(seconds(*b.LastOpenTime), 10)
		}
	}
	return breakerStuck
}

// The bounds of the ledger's schema, which its gate "LedgerRoom" goes by.
const (
	maxEntries  = 1024
	maxBreakers = 256
	// maxSequence is the largest one that is exact in a script, whose numbers are
	// doubles; a ledger written once a millisecond gets there in 285,000 years.
	maxSequence = 1<<53 - 1
)

// Lifetime is how long a copy is kept after it was put. It is longer than any
// limit looks back; and were it shorter, it would only be put again.
const Lifetime = 25 * time.Hour
