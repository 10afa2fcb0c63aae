// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func statuses(conditions []metav1.Condition) map[string]metav1.ConditionStatus {
	out := map[string]metav1.ConditionStatus{}
	for _, c := range conditions {
		out[c.Type] = c.Status
	}
	return out
}

func TestEachVerbLeavesWhatKstatusExpects(t *testing.T) {
	stale := func() []metav1.Condition {
		return []metav1.Condition{
			{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue},
			{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue},
		}
	}
	tests := map[string]struct {
		verb func(Set)
		want map[string]metav1.ConditionStatus
	}{
		"ready clears what was abnormal": {
			verb: func(s Set) { s.Ready("Active", "") },
			want: map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: metav1.ConditionTrue},
		},
		"not ready does not look like work under way": {
			verb: func(s Set) { s.NotReady("Drifted", "") },
			want: map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: metav1.ConditionFalse},
		},
		"unknown is neither true nor false": {
			verb: func(s Set) { s.Unknown("Unreadable", "") },
			want: map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: metav1.ConditionUnknown},
		},
		"reconciling excludes stalled": {
			verb: func(s Set) { s.Reconciling("Waiting", "") },
			want: map[string]metav1.ConditionStatus{
				v1alpha1.ConditionReady: metav1.ConditionFalse, v1alpha1.ConditionReconciling: metav1.ConditionTrue,
			},
		},
		"stalled excludes reconciling": {
			verb: func(s Set) { s.Stalled("UnknownKind", "") },
			want: map[string]metav1.ConditionStatus{
				v1alpha1.ConditionReady: metav1.ConditionFalse, v1alpha1.ConditionStalled: metav1.ConditionTrue,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			conditions := stale()
			tc.verb(Set{Conditions: &conditions, Generation: 3, Now: epoch})
			if diff := cmp.Diff(tc.want, statuses(conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			for _, c := range conditions {
				if c.ObservedGeneration != 3 {
					t.Errorf("%s speaks of generation %d, want 3", c.Type, c.ObservedGeneration)
				}
			}
		})
	}
}

func TestTransitionTimeMovesOnlyWithTheStatus(t *testing.T) {
	var conditions []metav1.Condition
	Set{&conditions, 1, epoch}.NotReady("Drifted", "one")
	Set{&conditions, 1, epoch.Add(time.Hour)}.NotReady("Drifted", "two")
	if got := conditions[0].LastTransitionTime.Time; !got.Equal(epoch) {
		t.Errorf("a new message moved the transition time to %s", got)
	}
	Set{&conditions, 1, epoch.Add(2 * time.Hour)}.Ready("InSync", "")
	if got := conditions[0].LastTransitionTime.Time; !got.Equal(epoch.Add(2 * time.Hour)) {
		t.Errorf("a new status left the transition time at %s", got)
	}
}

func TestMessagesAreCutAtTheEdgeOfACharacter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"a", "é", "漢", "😀"}).Draw(t, "unit")
		message := strings.Repeat(unit, rapid.IntRange(MaxMessage/len(unit)-3, MaxMessage/len(unit)+3).Draw(t, "count"))
		var conditions []metav1.Condition
		Set{&conditions, 1, epoch}.Ready("InSync", message)
		got := conditions[0].Message
		if len(got) > MaxMessage || !utf8.ValidString(got) {
			t.Fatalf("cut to %d bytes, valid %t", len(got), utf8.ValidString(got))
		}
		if len(message) <= MaxMessage && got != message {
			t.Fatal("a message that fits was changed")
		}
	})
}

// Names of users, paths, selectors and reasons are chosen by whoever wrote them,
// and people read messages on terminals.
func TestMessagesHoldNothingThatMovesTheTerminalOrAddsALine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		foreign := rapid.OneOf(
			rapid.String(),
			rapid.SampledFrom([]string{"a\nb", "\x1b[2J", "\u202eevil\u2066", "\u200b", "\u009b31m", "a\xffb", strings.Repeat("\x07", MaxMessage)}),
		).Draw(t, "foreign")
		for name, verb := range map[string]func(Set, string, string){
			"Ready": Set.Ready, "NotReady": Set.NotReady, "Unknown": Set.Unknown, "Reconciling": Set.Reconciling, "Stalled": Set.Stalled,
		} {
			var conditions []metav1.Condition
			verb(Set{&conditions, 1, epoch}, "Reason", "changed by "+foreign)
			for _, c := range conditions {
				if strings.ContainsFunc(c.Message, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(c.Message) {
					t.Fatalf("%s says %q", name, c.Message)
				}
				if len(c.Message) > MaxMessage || !strings.HasPrefix(c.Message, "changed by ") {
					t.Fatalf("%s says %d bytes: %.40q", name, len(c.Message), c.Message)
				}
			}
		}
	})
}
