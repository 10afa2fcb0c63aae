// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestDescribePhase_NamesTheEndOfAPlanThatIsSealed(t *testing.T) {
	cases := map[string]struct {
		status v1alpha1.RemediationPlanStatus
		want   string
	}{
		"a plan that no executor has taken": {v1alpha1.RemediationPlanStatus{}, "Created"},
		"a plan that runs":                  {v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanRunning}, "Running"},
		"a plan that is being sealed":       {v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanSealing, EndingAs: v1alpha1.PlanCanceled}, "Sealing (Canceled)"},
		"an end that is not known yet":      {v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanSealing}, "Sealing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := DescribePhase(&v1alpha1.RemediationPlan{Status: tc.status}); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestShorten_CutsCharactersAndMovesNoCursor(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a short text":            {"short", "short"},
		"a text that just fits":   {"0123456789", "0123456789"},
		"characters of two bytes": {strings.Repeat("é", 50), "ééééééééé…"},
		"a text that hides":       {"a\u202eb", "a\ufffdb"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Shorten(tc.text, 10); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestFormatUntil_TellsTimesThatHavePassed(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		at   time.Time
		want string
	}{
		"a time that has passed": {now, "until 2026-03-01T12:00:00Z"},
		"a time to come":         {now.Add(90 * time.Minute), "until 2026-03-01T13:30:00Z, in 90m"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FormatUntil(metav1.NewTime(tc.at), now); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSummary_NamesEachStandingThatHasObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		counts Summary
		want   string
	}{
		"no object":     {Summary{}, "0 guarded: 0 in sync, 0 drifted, 0 missing"},
		"each standing": {Summary{actions.StandingInSync: 1, actions.StandingUnknown: 2, actions.StandingRetired: 3, actions.StandingNotGuarded: 4}, "10 guarded: 1 in sync, 0 drifted, 0 missing, 2 unknown, 3 retired, 4 no longer guarded"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.counts.String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
