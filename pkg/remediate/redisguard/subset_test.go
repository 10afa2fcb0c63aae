// SPDX-License-Identifier: Apache-2.0

package redisguard

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

// adversary answers anything at all: words of the scripts and others, in any
// order, of any type; late, or with any error.
func adversary(t *rapid.T) *fake {
	word := rapid.OneOf(
		rapid.SampledFrom([]string{
			"allowed", "refused", "missing", "behind", "stale", "damaged", "stored", "", "0", "1", "3", "-1", "1024",
			"LedgerAge", "LedgerRoom", "CircuitBreaker", "TargetCooldown", "Cooldown", "MaxConcurrent", "MaxPerHour", "MaxPerDay",
			"CapConcurrent", "CapPerHour", "CapPerDay", "9223372036854775807", ago(0), ago(time.Minute), ago(-time.Hour),
		}),
		rapid.String(),
	)
	element := rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 9).Draw(t, "element") {
		case 0:
			return nil
		case 1:
			return rapid.Int64().Draw(t, "number")
		case 2:
			return []any{word.Draw(t, "inner")}
		case 3:
			return errors.New(word.Draw(t, "error"))
		}
		return word.Draw(t, "word")
	})
	failures := []error{
		serverError(`OOM`), serverError(`READONLY`), serverError(`LOADING`), serverError(`NOSCRIPT No matching script.`), serverError(``),
		context.DeadlineExceeded, context.Canceled, errors.New("EOF"), timeout{},
	}
	return &fake{answer: func(context.Context, string, []any) (any, error) {
		switch rapid.IntRange(0, 9).Draw(t, "reply") {
		case 0:
			return nil, rapid.SampledFrom(failures).Draw(t, "failure")
		case 1:
			return element.Draw(t, "reply"), nil
		case 2:
			// Even an answer beside an error.
			return []any{"allowed"}, rapid.SampledFrom(failures).Draw(t, "failure")
		case 3:
			return []any{"allowed"}, nil
		}
		return rapid.SliceOfN(element, 0, 5).Draw(t, "reply"), nil
	}}
}

// act is a call of a ledger that changed it.
type act struct {
	at      time.Time
	request ledger.Request
	end     string // of the step; empty for a reservation
}

func (a act) play(s *ledger.Status, rules ledger.Rules) (next *ledger.Status, done bool) {
	switch a.end {
	case "":
		next, verdict := ledger.Reserve(s, a.request, rules, a.at)
		return next, verdict.Granted
	case "released":
		return ledger.Release(s, a.request.Step, a.request.Epoch)
	}
	return ledger.Settle(s, a.request.Step, v1alpha1.LedgerOutcome(a.end), a.at)
}

// A run with any Redis at all is a run of the ledger alone, in which the steps
// that were refused by the mirror never came. (The steps themselves need not be
// among those that would have been granted otherwise: one that is refused leaves
// its place in the hour to another.)
func TestWithAnyRedisOnlyWhatTheLedgerAloneGrantsIsGranted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := strict()
		m := New(adversary(t), Config{Prefix: "p", Failures: 1000})
		first := ledger.Begin(epoch, true)
		s, now := &first, epoch
		var changes []act
		var open []ledger.Request
		for n := range rapid.IntRange(1, 40).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 60, 301, 1801, 7200}).Draw(t, "seconds")) * time.Second)
			a := act{at: now, request: someRequest(strconv.Itoa(n))}
			if len(open) > 0 && rapid.Bool().Draw(t, "ends") {
				a.request, open = open[0], open[1:]
				a.end = rapid.SampledFrom([]string{"Succeeded", "Failed", "released"}).Draw(t, "end")
			} else if m.Consult(t.Context(), "production", "uid", s, a.request, rules, now).Vetoed() {
				continue
			}
			next, done := a.play(s, rules)
			_ = m.Put(t.Context(), "production", "uid", next) // whether it did matters to nobody
			if !done {
				continue
			}
			s = next
			changes = append(changes, a)
			if a.end == "" {
				open = append(open, a.request)
			}
		}
		alone := ledger.Begin(epoch, true)
		twin := &alone
		for i, a := range changes {
			var done bool
			if twin, done = a.play(twin, rules); !done {
				t.Fatalf("call %d, %+v, is not granted by the ledger alone", i, a)
			}
		}
		if diff := cmp.Diff(twin, s); diff != "" {
			t.Fatalf("the ledger differs (-alone +with redis):\n%s", diff)
		}
	})
}

// The other half: a mirror that would grant too much. The executor asks it first
// and the ledger then, so an "allowed" counts for nothing.
func TestAMirrorThatAllowsEverythingGrantsNothing(t *testing.T) {
	rules := strict()
	m := New(saying("allowed"), Config{Prefix: "p"})
	first := ledger.Begin(epoch, true)
	s, granted := &first, 0
	for n := range 100 {
		r := someRequest(fmt.Sprint(n))
		if m.Consult(t.Context(), "production", "uid", s, r, rules, epoch).Vetoed() {
			t.Fatal("it allows everything")
		}
		next, verdict := ledger.Reserve(s, r, rules, epoch)
		if s = next; verdict.Granted {
			granted++
		}
	}
	if granted != 2 {
		t.Errorf("%d are granted at once, the limit is 2", granted)
	}
}
