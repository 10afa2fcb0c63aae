// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
)

func TestWordsOfARefusedAcceptance(t *testing.T) {
	alice := clitest.Found("/spec/replicas", "1", "5", "alice", 2*time.Hour)
	for reason, want := range map[actions.AcceptRefusalReason]string{
		actions.RefusedUnobserved:   "no observed state to accept",
		actions.RefusedInSync:       "is in sync: there is no change to accept",
		actions.RefusedRetired:      "is retired: there is no state to accept",
		actions.RefusedNotGuarded:   "no guard selects it any more: there is no state to accept",
		actions.RefusedUnknown:      "its state is unknown, and only an observed state can be accepted",
		actions.RefusedUnlisted:     "it has findings that are not listed, so that the filters cannot be applied",
		actions.RefusedUnmatched:    "no finding matches",
		actions.RefusedOtherFinding: "it also has /spec/replicas by alice, first seen 2026-03-01T10:00:00Z",
	} {
		if got := refusalWords(actions.AcceptRefusal{Reason: reason, Finding: &alice}); got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
}

func TestWordsOfAnAcceptance(t *testing.T) {
	for reason, want := range map[actions.AcceptReason]string{
		actions.AcceptedRevision:      "accepted (revision 3)",
		actions.AcceptedRetired:       "retired",
		actions.AcceptedTooLarge:      "accepted, and too large to be kept: its state is Unknown until it is smaller",
		actions.AcceptBaselineRemoved: "its Baseline was removed meanwhile",
		actions.AcceptSuperseded:      "bob has asked for another state since",
		actions.AcceptForbidden:       "lets only these accept: boss",
		actions.AcceptOutdated:        "it changed before the request was seen; look again and accept the present state",
	} {
		outcome := actions.AcceptOutcome{Reason: reason, Revision: 3, By: "bob", Message: "lets only these accept: boss"}
		if got := acceptWords(outcome); got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
}
