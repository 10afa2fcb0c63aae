// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

var testNow = time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)

// oneOfTen is a pool with ten guarded objects, of which one is due.
func oneOfTen(running int, threshold Percent) Pool {
	return Pool{
		Now: testNow, MaxConcurrentChecks: 100,
		Installation: Budget{Total: 10, Running: running, Threshold: threshold},
		Candidates:   []Candidate{{Object: Object{Name: "web"}, Due: testNow}},
	}
}

// The three scenarios of the threshold, as the drift detection of Terranetes
// describes them. It calls 0.1 of the third one "1%"; it is 10 %.
func TestDriftThresholdScenarios(t *testing.T) {
	tests := map[string]struct {
		running   int
		threshold Percent
		starts    bool
	}{
		"Scenario 1: ten objects, one running, 20 %: it starts":                  {running: 1, threshold: 20, starts: true},
		"Scenario 2: ten objects, two running, 20 %: it is re-evaluated in 5 m":  {running: 2, threshold: 20},
		"Scenario 3: ten objects, none running, 10 %: rounded up to one, starts": {running: 0, threshold: 10, starts: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Select(oneOfTen(tc.running, tc.threshold))
			if len(got.Start) == 1 != tc.starts {
				t.Fatalf("started %v", got.Start)
			}
			if tc.starts {
				return
			}
			if len(got.Wait) != 1 || got.Wait[0].Obstacle != ObstacleThreshold || !got.Wait[0].Until.Equal(testNow.Add(5*time.Minute)) {
				t.Errorf("waiting %v, want until %s", got.Wait, testNow.Add(5*time.Minute))
			}
		})
	}
}

func TestDriftIntervalIs3hAndStartsAnewWithAChange(t *testing.T) {
	wish := map[string]string{AnnotationDriftDetection: "true"}
	settings := Resolve(Hierarchy{Annotations: wish, Guards: []Guard{guard("web", nil, "")}})
	timing := Timing{UID: "u", Period: settings.Period.Value, LastCheck: testNow, Now: testNow}
	first := NextCheck(timing).At
	if early, late := testNow.Add(3*time.Hour), testNow.Add(3*time.Hour+36*time.Minute); first.Before(early) || first.After(late) {
		t.Errorf("the first check is at %s, want %s to %s", first, early, late)
	}
	timing.Stored, timing.Now = first, testNow.Add(time.Hour)
	timing.LastChange = timing.Now
	if second, early := NextCheck(timing).At, testNow.Add(4*time.Hour); second.Before(early) {
		t.Errorf("after a change at %s the check is at %s, want not before %s", timing.LastChange, second, early)
	}
}

func TestDriftThresholdDefaultsTo10Percent(t *testing.T) {
	got, err := ParseThreshold("")
	if err != nil || got != 10 {
		t.Errorf("%d, %v", got, err)
	}
}

// The configuration hierarchy of the drift detection of the OpenStack resource
// controller: per resource, per kind, for all, built in.
func TestResyncPeriodPrecedence(t *testing.T) {
	tests := map[string]struct {
		perResource            string
		perKind, forAll, flag_ *time.Duration
		want                   time.Duration
	}{
		"Highest: the resource over its kind and all":  {perResource: "12h", perKind: hours(1), forAll: hours(10), want: 12 * time.Hour},
		"Medium: the kind over all":                    {perKind: hours(1), forAll: hours(10), want: time.Hour},
		"Lowest: all":                                  {forAll: hours(10), want: 10 * time.Hour},
		"Lowest: the option":                           {flag_: hours(10), want: 10 * time.Hour},
		"Built in: disabled":                           {want: 0},
		"Enable: a positive value on the resource":     {perResource: "1h", want: time.Hour},
		"Disable: 0 on the resource":                   {perResource: "0s", perKind: hours(1), forAll: hours(10), want: 0},
		"Disable: 0 on the kind, although all have it": {perKind: hours(0), forAll: hours(10), want: 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := Hierarchy{
				GVK: deployment, Guards: []Guard{guard("web", nil, v1alpha1.ObjectOverrideStop)},
				InstallWide: defaults("platform", tc.forAll, tc.perKind), Option: tc.flag_,
			}
			if tc.perResource != "" {
				h.Annotations = asks(tc.perResource)
			}
			if got := Resolve(h); got.Period.Value != tc.want {
				t.Errorf("period %s, want %s; %v", got.Period.Value, tc.want, got.Period.Trail)
			}
		})
	}
}

// What becomes of a resource that was deleted outside.
func TestResourceRecreationOnExternalDeletion(t *testing.T) {
	for _, tc := range []struct {
		name       string
		management v1alpha1.ManagementPolicy
		origin     v1alpha1.Origin
		period     time.Duration
		want       Consequence
	}{
		{"created and resync on: recreated", v1alpha1.Managed, v1alpha1.OriginCreated, time.Hour, Recreate},
		{"created and resync off: terminal", v1alpha1.Managed, v1alpha1.OriginCreated, 0, Terminal},
		{"imported and resync on: terminal", v1alpha1.Managed, v1alpha1.OriginImported, time.Hour, Terminal},
		{"imported and resync off: terminal", v1alpha1.Managed, v1alpha1.OriginImported, 0, Terminal},
		{"unmanaged and resync on: untouched", v1alpha1.Unmanaged, v1alpha1.OriginCreated, time.Hour, Untouched},
		{"unmanaged and resync off: untouched", v1alpha1.Unmanaged, v1alpha1.OriginImported, 0, Untouched},
	} {
		t.Run(tc.name, func(t *testing.T) {
			settings := Resolve(Hierarchy{Guards: []Guard{{Name: "SpecGuard/web", Period: &tc.period, Management: tc.management}}})
			got, reason := Deleted(Deletion{
				Guarded: true, Management: settings.Management.Value, Resync: settings.On(), Origin: tc.origin, Attributed: true,
			})
			if got != tc.want {
				t.Errorf("%s (%s), want %s", got, reason, tc.want)
			}
		})
	}
}

// The upstream's jitter was to be a tenth to either side; an early check would
// find that it is not due yet, so here it is up to a fifth, and never negative.
func TestResyncJitterSpreadsWhatHappenedAtOnce(t *testing.T) {
	const objects, slots = 10000, 20
	counts := map[time.Duration]int{}
	period := 10 * time.Hour
	for i := range objects {
		due := NextCheck(Timing{UID: fmt.Sprintf("uid-%d", i), Period: period, LastCheck: testNow, Now: testNow}).At
		counts[due.Sub(testNow.Add(period))*slots/(period/jitterShare+time.Second)]++
	}
	for slot := range time.Duration(slots) {
		// The deviation of such a count is 22; seven of it.
		if n, want := counts[slot], objects/slots; n < want-150 || n > want+150 {
			t.Errorf("%d checks fall into slot %d of %d, want about %d", n, slot, slots, want)
		}
	}
}
