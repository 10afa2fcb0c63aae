// SPDX-License-Identifier: Apache-2.0

package world

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

func TestHoursAreOpenWithinATolerance(t *testing.T) {
	h := &hours{opens: time.Minute, closes: 2 * time.Minute, again: 5 * time.Minute, ends: 6 * time.Minute}
	for name, tc := range map[string]struct {
		at   time.Duration
		want bool
	}{
		"long before it opens":              {0, false},
		"as long before as a clock is off":  {55 * time.Second, true},
		"while it is open":                  {90 * time.Second, true},
		"a moment after it closed":          {124 * time.Second, true},
		"a while after it closed":           {125 * time.Second, false},
		"between the two":                   {200 * time.Second, false},
		"a moment before it opens again":    {296 * time.Second, true},
		"while it is open again":            {330 * time.Second, true},
		"a while after it closed for good":  {366 * time.Second, false},
		"a moment after it closed for good": {364 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := h.open(tc.at, tolerance); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// The judge's hours are two pairs of numbers; the policy's are a window and allowed
// times in some zone. They must be the same hours.
func TestTheHoursOfThePolicyAreThoseOfTheJudge(t *testing.T) {
	midnight := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // to be had again
	for range 50 {
		h := drawHours(rng)
		spec := h.schedule(midnight)
		schedule, errs := planner.Schedule(&spec, nil)
		if len(errs) > 0 {
			t.Fatalf("%+v: %v", spec, errs)
		}
		for at := time.Duration(0); at < 30*time.Minute; at += 15 * time.Second {
			if got, want := schedule.At(midnight.Add(at)).Open, h.open(at, 0); got != want {
				t.Fatalf("%s in %s, at %s: the policy says %v", h, h.zone, at, got)
			}
		}
	}
}
