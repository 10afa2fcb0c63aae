// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// An executor that was superseded asks for its place once more. With its epoch in the entry,
// its release would take away the place of its successor.
func TestAnEarlierExecutorDoesNotTakeThePlaceOfItsSuccessor(t *testing.T) {
	asked := request(1, "p", "t1")
	asked.Epoch = 2
	first := Begin(epoch, true)
	s, _ := Reserve(&first, asked, rules(nil), epoch)
	asked.Epoch = 1
	next, verdict := Reserve(s, asked, rules(nil), epoch)
	if e := Find(next, asked.Step); !verdict.Granted || next != s || e.Epoch != 2 {
		t.Errorf("granted %t, entry %+v", verdict.Granted, e)
	}
}

// People read the stored state of a breaker.
func TestABreakerWhoseProbeCameToNoResultIsStoredAsOpen(t *testing.T) {
	for name, end := range map[string]string{
		"because the probe wrote nothing":                 "release",
		"because a cancellation ended the probe, see D17": "stop",
	} {
		t.Run(name, func(t *testing.T) {
			s := play(t, rules(noHourlyLimit), []act{
				{0, "reserve", 1}, {1, "fail", 1}, {6, "reserve", 2}, {7, "fail", 2}, {37, "reserve", 3}, {38, end, 3},
			})
			if b := s.Breakers[0]; b.State != v1alpha1.BreakerOpen || b.Probe != nil {
				t.Errorf("the breaker is %+v", b)
			}
		})
	}
}
