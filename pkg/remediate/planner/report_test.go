// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"slices"
	"testing"
	"time"
)

// Section 6 of the review of remediation: a plan did not name its drift report.
func TestPlansAboutOneDriftHaveOneDriftReport(t *testing.T) {
	of := func(change func(*Input)) string {
		in := input(drift("web"), drift("cart"))
		change(in)
		plans := Make(in).Plans
		if len(plans) != 1 || plans[0].DriftReportID == "" {
			t.Fatalf("plans are %+v", plans)
		}
		return plans[0].DriftReportID
	}
	id := of(func(*Input) {})
	for name, test := range map[string]struct {
		change func(*Input)
		same   bool
	}{
		"a moment later":                     {func(in *Input) { in.Now = in.Now.Add(time.Minute) }, true},
		"a second attempt":                   {func(in *Input) { in.Drifts[0].Attempts = 1 }, true},
		"another policy":                     {func(in *Input) { in.Policy.UID, in.Policy.Digest = "other", "sha256:other" }, true},
		"found in another order":             {func(in *Input) { slices.Reverse(in.Drifts) }, true},
		"more severe, and so in other order": {func(in *Input) { in.Drifts[1].Severity.Score = 100 }, true},
		"seen anew":                          {func(in *Input) { in.Drifts[0].FirstSeen = in.Drifts[0].FirstSeen.Add(-time.Minute) }, false},
		"drifted elsewhere":                  {func(in *Input) { in.Drifts[1].DriftedHash = "pl1:other" }, false},
		"another object of the name":         {func(in *Input) { in.Drifts[1].UID = "other" }, false},
		"in another Environment":             {func(in *Input) { in.Policy.Spec.EnvironmentName = "staging" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := of(test.change); (got == id) != test.same {
				t.Errorf("the drift report is %s, and was %s", got, id)
			}
		})
	}
}
