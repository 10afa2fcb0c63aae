// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestALabelNamesItsPolicyWithinTheLimitOfLabels(t *testing.T) {
	longest, tooLong := strings.Repeat("x", 63), strings.Repeat("x", 64)
	if got := PolicyLabel(longest); got != longest {
		t.Errorf("a name that fits becomes %q", got)
	}
	got := PolicyLabel(tooLong)
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(got) {
		t.Errorf("a name that is too long becomes %q", got)
	}
	if other := PolicyLabel(tooLong + "y"); other == got {
		t.Errorf("two policies have the label %q", got)
	}
}

func TestADigestTellsTwoPoliciesApart(t *testing.T) {
	one, same, other := policy().Spec, policy().Spec, policy().Spec
	other.Safety.MaxTargets = 3
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(Digest(&one)) {
		t.Errorf("the digest is %q", Digest(&one))
	}
	if Digest(&one) != Digest(&same) {
		t.Error("the same spec has two digests")
	}
	if Digest(&one) == Digest(&other) {
		t.Error("two specs have the same digest")
	}
}

// epoch is a Monday, 10:00 UTC.
func TestAPolicyActsWhenItsScheduleSaysSo(t *testing.T) {
	tests := map[string]struct {
		schedule v1alpha1.RemediationSchedule
		open     bool
		errors   int
	}{
		"without a schedule, always":                    {v1alpha1.RemediationSchedule{}, true, 0},
		"on an allowed day":                             {v1alpha1.RemediationSchedule{AllowedDays: []v1alpha1.Weekday{"Monday"}}, true, 0},
		"not on another day":                            {v1alpha1.RemediationSchedule{AllowedDays: []v1alpha1.Weekday{"Tuesday"}}, false, 0},
		"within the allowed hours":                      {v1alpha1.RemediationSchedule{AllowedStart: "09:00", AllowedEnd: "17:00"}, true, 0},
		"not after them":                                {v1alpha1.RemediationSchedule{AllowedStart: "03:00", AllowedEnd: "09:00"}, false, 0},
		"in a maintenance window, which is in UTC":      {v1alpha1.RemediationSchedule{MaintenanceWindow: &v1alpha1.MaintenanceWindow{Start: "09:00", End: "11:00"}}, true, 0},
		"not in one in another zone that is over there": {v1alpha1.RemediationSchedule{MaintenanceWindow: &v1alpha1.MaintenanceWindow{Start: "09:00", End: "11:00", TimeZone: "Asia/Tokyo"}}, false, 0},
		"never with a schedule that is none":            {v1alpha1.RemediationSchedule{AllowedStart: "noon"}, false, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			schedule, errs := Schedule(&test.schedule, nil)
			if (len(errs) > 0) != (test.errors > 0) {
				t.Fatalf("errors: %v", errs)
			}
			if state := schedule.Decide(epoch, time.Duration(0)); state.Open != test.open {
				t.Errorf("open %t: %+v", state.Open, state)
			}
		})
	}
}
