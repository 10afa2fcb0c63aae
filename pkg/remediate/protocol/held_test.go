// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A plan that waits for the health of others stored a later time every ten seconds.
func TestADeferralWhoseTimeMovesOnIsStoredOnceAMinute(t *testing.T) {
	s := running(v1alpha1.StepPlanned)
	s.Plan.Status.StartTime = nil
	s.Facts.Steps = map[int32]StepFacts{0: {Settled: Yes, Let: Yes}}
	const look, looks = 10 * time.Second, 30
	stored := 0
	for range looks {
		s.Facts.Brakes = &Brakes{Known: true, Closed: "too few are healthy", Until: s.Now.Add(look)}
		e := Next(s)
		if write, ok := e.(WriteStatus); ok {
			stored++
			s.Plan.Status = write.Status
			e = Next(s)
		}
		if wait, ok := e.(Wait); !ok || !wait.Until.Equal(s.Now.Add(look)) {
			t.Fatalf("next is %T %+v", e, e)
		}
		s.Now = s.Now.Add(look)
	}
	if want := int(looks * look / retell); stored != want {
		t.Errorf("the status was stored %d times, want %d", stored, want)
	}
}

func TestWhichTimeOfADeferralIsToldAlready(t *testing.T) {
	stored := &metav1.Time{Time: epoch.Truncate(time.Second)}
	tests := map[string]struct {
		stored *metav1.Time
		until  time.Time
		told   bool
	}{
		"the same time is told":                    {stored, stored.Time, true},
		"a part of a second is not stored":         {stored, stored.Add(time.Second - 1), true},
		"a little later is not told again":         {stored, stored.Add(retell - time.Second), true},
		"a minute later is told":                   {stored, stored.Add(retell), false},
		"any earlier time is told":                 {stored, stored.Add(-time.Second), false},
		"the end of a wait without an end is told": {nil, stored.Time, false},
		"a wait that has no end any more is told":  {stored, time.Time{}, false},
		"a wait without an end is not told again":  {nil, time.Time{}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := toldTime(tc.stored, tc.until); got != tc.told {
				t.Errorf("told: %t", got)
			}
		})
	}
}
