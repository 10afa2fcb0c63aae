// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// A run failed with "0% errors in 0 requests", by requests that were counted before its stage was
// acknowledged.
func TestAFailureIsToldWithTheCountsThatItRestsOn(t *testing.T) {
	got := rollout.Describe(&judge.Assessment{
		Verdict: judge.Fail, Reason: judge.Errors, Errors: judge.Bet{E: 9030, FailsAt: 200}, Latency: judge.Bet{E: 0.547},
		Canary: judge.HealthResult{ErrorRate: judge.Interval{Upper: 1}}, Run: judge.Tally{Requests: 182, Failed: 9}, ControlRun: judge.Tally{Requests: 1700},
	}, "stable")
	want := "Errors: 0% errors [0, 100] in 0 requests of the stage, stable 0%; in the run 9 of 182 failed, of stable 0 of 1700; errors e 9.03e+03, latency e 0.547, fails at 200"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
