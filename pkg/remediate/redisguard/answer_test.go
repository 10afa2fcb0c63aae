// SPDX-License-Identifier: Apache-2.0

package redisguard

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

var epoch = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// strict has every limit.
func strict() ledger.Rules {
	caps := func() ledger.Caps {
		return ledger.Caps{Concurrent: new(int32(2)), PerHour: new(int32(3)), PerDay: new(int32(5))}
	}
	return ledger.Rules{
		Policy: ledger.Limits{Caps: caps(), Cooldown: 5 * time.Minute, FailureThreshold: 2, OpenDuration: 30 * time.Minute},
		All:    caps(),
	}
}

// ago is a time before the epoch, as the script tells it.
func ago(d time.Duration) string { return strconv.FormatInt(epoch.Add(-d).Unix(), 10) }

func refusedBy(name ledger.GateName, until time.Time) Answer {
	return Answer{Verdict: Refused, Refused: ledger.Gate{Name: name, Until: until}}
}

var noTime time.Time

func TestAnswersOfTheScript(t *testing.T) {
	tests := map[string]struct {
		reply any
		rules ledger.Rules
		want  Answer
	}{
		"allowed":          {reply: []any{"allowed"}, want: Answer{Verdict: Allowed}},
		"missing":          {reply: []any{"missing"}, want: Answer{Reason: ReasonMissing}},
		"damaged":          {reply: []any{"damaged"}, want: Answer{Reason: ReasonDamaged}},
		"behind":           {reply: []any{"behind", "7"}, want: Answer{Reason: ReasonBehind, Sequence: 7}},
		"stale":            {reply: []any{"stale", "9"}, want: Answer{Reason: ReasonStale, Sequence: 9}},
		"the hour is full": {reply: []any{"refused", "MaxPerHour", "3", ago(50 * time.Minute)}, want: refusedBy(ledger.GateHour, epoch.Add(10*time.Minute))},
		"the hour is full of steps that have no end": {reply: []any{"refused", "MaxPerHour", "3", ""}, want: refusedBy(ledger.GateHour, noTime)},
		"the day is full for all":                    {reply: []any{"refused", "CapPerDay", "5", ago(0)}, want: refusedBy(ledger.GateAllDay, epoch.Add(24*time.Hour))},
		"too many at once":                           {reply: []any{"refused", "MaxConcurrent", "2", ""}, want: refusedBy(ledger.GateConcurrent, noTime)},
		"the policy cools down":                      {reply: []any{"refused", "Cooldown", "0", ago(time.Minute)}, want: refusedBy(ledger.GateCooldown, epoch.Add(4*time.Minute))},
		"the target is written":                      {reply: []any{"refused", "TargetCooldown", "1", ""}, want: refusedBy(ledger.GateTarget, noTime)},
		"the breaker is open":                        {reply: []any{"refused", "CircuitBreaker", "0", ago(0)}, want: refusedBy(ledger.GateBreaker, epoch.Add(30*time.Minute))},
		"the breaker is half open":                   {reply: []any{"refused", "CircuitBreaker", "0", ""}, want: refusedBy(ledger.GateBreaker, noTime)},
		"the ledger is new":                          {reply: []any{"refused", "LedgerAge", "0", ago(-20 * time.Hour)}, want: refusedBy(ledger.GateAge, epoch.Add(20*time.Hour))},
		"the ledger is full":                         {reply: []any{"refused", "LedgerRoom", "1024", ""}, want: refusedBy(ledger.GateRoom, noTime)},

		"nothing":                                 {want: Answer{Reason: ReasonNonsense}},
		"a number":                                {reply: int64(1), want: Answer{Reason: ReasonNonsense}},
		"a text":                                  {reply: "allowed", want: Answer{Reason: ReasonNonsense}},
		"an empty array":                          {reply: []any{}, want: Answer{Reason: ReasonNonsense}},
		"an array of nothing":                     {reply: []any{nil}, want: Answer{Reason: ReasonNonsense}},
		"an array of an error":                    {reply: []any{errors.New("x")}, want: Answer{Reason: ReasonNonsense}},
		"arrays in arrays":                        {reply: []any{[]any{"allowed"}}, want: Answer{Reason: ReasonNonsense}},
		"a map":                                   {reply: map[any]any{"allowed": true}, want: Answer{Reason: ReasonNonsense}},
		"allowed, and more":                       {reply: []any{"allowed", "1"}, want: Answer{Reason: ReasonNonsense}},
		"another word":                            {reply: []any{"granted"}, want: Answer{Reason: ReasonNonsense}},
		"too many words":                          {reply: []any{"refused", "MaxPerHour", "3", "", ""}, want: Answer{Reason: ReasonNonsense}},
		"behind what":                             {reply: []any{"behind", "many"}, want: Answer{Reason: ReasonNonsense}},
		"stale by a negative sequence":            {reply: []any{"stale", "-1"}, want: Answer{Reason: ReasonNonsense}},
		"refused by a gate that nobody knows":     {reply: []any{"refused", "Mood", "0", ""}, want: Answer{Reason: ReasonNonsense}},
		"refused by a limit that is not set":      {reply: []any{"refused", "CapPerHour", "9", ago(0)}, rules: ledger.Rules{Policy: strict().Policy}, want: Answer{Reason: ReasonNonsense}},
		"refused by a limit that is not reached":  {reply: []any{"refused", "MaxPerHour", "2", ago(0)}, want: Answer{Reason: ReasonNonsense}},
		"refused by a count that is none":         {reply: []any{"refused", "MaxPerHour", "lots", ago(0)}, want: Answer{Reason: ReasonNonsense}},
		"refused for what is over":                {reply: []any{"refused", "MaxPerHour", "3", ago(time.Hour)}, want: Answer{Reason: ReasonNonsense}},
		"refused from a future on":                {reply: []any{"refused", "MaxPerHour", "3", ago(-2 * time.Minute)}, want: Answer{Reason: ReasonNonsense}},
		"refused for ever":                        {reply: []any{"refused", "LedgerAge", "0", "9223372036854775807"}, want: Answer{Reason: ReasonNonsense}},
		"refused until next week":                 {reply: []any{"refused", "LedgerAge", "0", ago(-7 * 24 * time.Hour)}, want: Answer{Reason: ReasonNonsense}},
		"refused from no time that is one":        {reply: []any{"refused", "Cooldown", "0", "noon"}, want: Answer{Reason: ReasonNonsense}},
		"a cooldown without an end":               {reply: []any{"refused", "Cooldown", "0", ""}, want: Answer{Reason: ReasonNonsense}},
		"a ledger that is new for ever":           {reply: []any{"refused", "LedgerAge", "0", ""}, want: Answer{Reason: ReasonNonsense}},
		"too many at once, but only until a time": {reply: []any{"refused", "MaxConcurrent", "2", ago(0)}, want: Answer{Reason: ReasonNonsense}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rules := test.rules
			if rules == (ledger.Rules{}) {
				rules = strict()
			}
			got := answered(test.reply, rules, epoch)
			if got.Verdict == Refused && got.Refused.Message == "" {
				t.Error("it refuses and does not say why")
			}
			opts := cmp.Options{cmpopts.IgnoreFields(Answer{}, "Err"), cmpopts.IgnoreFields(ledger.Gate{}, "Message")}
			if diff := cmp.Diff(test.want, got, opts); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if (got.Err != nil) != (got.Reason == ReasonNonsense) {
				t.Errorf("error %v with reason %q", got.Err, got.Reason)
			}
		})
	}
}

func TestTheZeroAnswerVetoesNothing(t *testing.T) {
	if (Answer{}).Vetoed() || (Answer{Verdict: "Maybe"}).Vetoed() || (Answer{Verdict: Allowed}).Vetoed() || !(Answer{Verdict: Refused}).Vetoed() {
		t.Error("a veto is what says so, and nothing else")
	}
}

// FuzzAnswer: whatever texts come, no refusal outlasts what its gate could mean.
func FuzzAnswer(f *testing.F) {
	f.Add(4, "refused", "MaxPerHour", "3", ago(time.Minute))
	f.Add(4, "refused", "LedgerAge", "0", ago(-time.Hour))
	f.Add(4, "refused", "CircuitBreaker", "0", "")
	f.Add(2, "stale", "18446744073709551615", "", "")
	f.Add(1, "allowed", "", "", "")
	f.Add(4, "refused", "LedgerAge", "0", "9223372036854775807")
	f.Add(4, "refused", "LedgerAge", "0", "-9223372036854775808")
	longest := 24*time.Hour + slack
	f.Fuzz(func(t *testing.T, n int, a, b, c, d string) {
		words := []any{a, b, c, d}
		got := answered(words[:min(max(n, 0), len(words))], strict(), epoch)
		switch got.Verdict {
		case Refused:
			if u := got.Refused.Until; !u.IsZero() && (!u.After(epoch) || u.After(epoch.Add(longest))) {
				t.Errorf("%q refuses until %s", words, u)
			}
			if _, known := gateOf(got.Refused.Name, strict()); !known {
				t.Errorf("%q refuses by %q", words, got.Refused.Name)
			}
		case Allowed:
			if a != "allowed" {
				t.Errorf("%q allows", words)
			}
		case Unknown:
			if got.Reason == "" {
				t.Errorf("%q is unknown for no reason", words)
			}
		}
	})
}
