// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestRoute(t *testing.T) {
	chat := Channel{Name: "chat", MinimumSeverity: v1alpha1.SeverityInfo}
	mail := Channel{Name: "mail", MinimumSeverity: v1alpha1.SeverityMedium}
	pager := Channel{Name: "pager", MinimumSeverity: v1alpha1.SeverityCritical}
	all := []Channel{chat, mail, pager}
	tests := map[string]struct {
		kind     EventType
		level    v1alpha1.SeverityLevel
		channels []Channel
		want     []string
	}{
		"a critical failure reaches every channel":                  {PlanFailed, v1alpha1.SeverityCritical, all, []string{"chat", "mail", "pager"}},
		"a failure of low severity keeps the pager quiet":           {PlanFailed, v1alpha1.SeverityLow, all, []string{"chat"}},
		"a level reaches a channel of the same minimum":             {PlanCompleted, v1alpha1.SeverityMedium, all, []string{"chat", "mail"}},
		"an event without severity reaches every channel":           {PlanCompleted, "", all, []string{"chat", "mail", "pager"}},
		"an unknown severity reaches every channel":                 {PlanCompleted, "Fatal", all, []string{"chat", "mail", "pager"}},
		"a channel without a minimum is told of everything":         {PlanStarted, v1alpha1.SeverityInfo, []Channel{{Name: "old"}}, []string{"old"}},
		"an unknown minimum keeps no event away":                    {PlanStarted, v1alpha1.SeverityInfo, []Channel{{Name: "odd", MinimumSeverity: "Fatal"}}, []string{"odd"}},
		"a failure below every minimum goes to all channels":        {PlanFailed, v1alpha1.SeverityLow, []Channel{mail, pager}, []string{"mail", "pager"}},
		"an escalation below every minimum goes to all channels":    {PlanEscalated, v1alpha1.SeverityLow, []Channel{mail, pager}, []string{"mail", "pager"}},
		"a completed plan below every minimum goes to no channel":   {PlanCompleted, v1alpha1.SeverityLow, []Channel{mail, pager}, nil},
		"an event that is not known is no urgent one":               {"PlanBlessed", v1alpha1.SeverityLow, []Channel{pager}, nil},
		"a policy without channels tells of nothing, urgent or not": {PlanFailed, v1alpha1.SeverityCritical, nil, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Route(Event{Type: tc.kind, Severity: tc.level}, tc.channels)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("channels (-want +got):\n%s", diff)
			}
		})
	}
}

// naiveRoute says the same by words: a list of the levels that each minimum lets through.
func naiveRoute(e Event, channels []Channel) []string {
	passes := map[v1alpha1.SeverityLevel]string{
		"Info": "Info Low Medium High Critical", "Low": "Low Medium High Critical", "Medium": "Medium High Critical",
		"High": "High Critical", "Critical": "Critical",
	}
	_, known := passes[e.Severity]
	var told []string
	for pass := range 2 {
		for _, c := range channels {
			list, limits := passes[c.MinimumSeverity]
			through := !known || !limits
			for level := range strings.FieldsSeq(list) {
				through = through || level == string(e.Severity)
			}
			if through || pass == 1 {
				told = append(told, c.Name)
			}
		}
		if len(told) > 0 || e.Type != PlanFailed && e.Type != PlanEscalated {
			return told
		}
	}
	return told
}

func TestRoute_LikeTheNaiveTwin(t *testing.T) {
	levels := []v1alpha1.SeverityLevel{"", "Info", "Low", "Medium", "High", "Critical", "Fatal"}
	kinds := []EventType{PlanCreated, PlanStarted, PlanCompleted, PlanFailed, PlanEscalated, "PlanBlessed"}
	rapid.Check(t, func(t *rapid.T) {
		e := Event{Type: rapid.SampledFrom(kinds).Draw(t, "type"), Severity: rapid.SampledFrom(levels).Draw(t, "severity")}
		var channels []Channel
		for i, minimum := range rapid.SliceOfN(rapid.SampledFrom(levels), 0, 8).Draw(t, "minima") {
			channels = append(channels, Channel{Name: "c" + strconv.Itoa(i), MinimumSeverity: minimum})
		}
		got := Route(e, channels)
		if diff := cmp.Diff(naiveRoute(e, channels), got); diff != "" {
			t.Fatalf("%+v over %+v (-naive +got):\n%s", e, channels, diff)
		}
		if len(got) == 0 && len(channels) > 0 && e.Type.Urgent() {
			t.Fatalf("no channel is told of %+v", e)
		}
	})
}
