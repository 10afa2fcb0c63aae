// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Reasons of the Ready condition, beside the drift types of the worst finding
// (DriftedMissing … DriftedOther).
const (
	reasonInSync    = "InSync"
	reasonMissing   = "Missing"
	reasonUnknown   = "Unreadable"
	reasonRetired   = "Retired"
	reasonSuspended = "GuardNotActive"
)

// maxPathsTold bounds how many paths a message names.
const maxPathsTold = 5

// setConditions says in conditions what the status says in fields. Drift is not
// a lag: Ready is False and nothing is reconciling, so that a wait for the
// Baseline ends instead of hanging.
func setConditions(b *v1alpha1.Baseline, bodyLost bool, now time.Time) {
	c := condition.Set{Conditions: &b.Status.Conditions, Generation: b.Generation, Now: now}
	setDegraded(c, &b.Status)
	switch b.Status.State {
	case v1alpha1.StateRetired:
		c.Ready(reasonRetired, "a trusted writer removed the object")
	case v1alpha1.StateNotGuarded:
		c.Unknown(v1alpha1.ReasonNotGuarded, "no guard selects the object any more")
	case v1alpha1.StateInSync:
		c.Ready(reasonInSync, inSyncMessage(b.Status.Masks))
	case v1alpha1.StateDrifted:
		c.NotReady(driftedReason(b.Status.Findings), driftMessage(&b.Status))
	case v1alpha1.StateMissing:
		c.NotReady(reasonMissing, driftMessage(&b.Status))
	case v1alpha1.StateUnknown:
		if b.Status.Oversized != nil {
			c.Unknown(v1alpha1.ReasonBodyTooLarge, specguard.OversizedMessage(b.Status.Oversized))
			return
		}
		if bodyLost {
			c.Unknown(v1alpha1.ReasonBodyLost, "the authorized body is lost, so the object cannot be compared; the last findings stand. To authorize the observed state, accept it")
			return
		}
		c.Unknown(reasonUnknown, "the object cannot be read; the last findings stand")
	default:
		c.Unknown(reasonUnknown, fmt.Sprintf("unknown state %q", b.Status.State))
	}
}

// setAcceptanceAllowed keeps a refusal until the next request, or until there is nothing to
// accept any more.
func setAcceptanceAllowed(b *v1alpha1.Baseline, d *decision, now time.Time) {
	c := condition.Set{Conditions: &b.Status.Conditions, Generation: b.Generation, Now: now}
	stored := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionAcceptanceAllowed)
	settled := d.clearAccept || b.Status.State == v1alpha1.StateInSync || b.Status.State == v1alpha1.StateRetired
	switch {
	case d.refusal != "":
		c.False(v1alpha1.ConditionAcceptanceAllowed, "NotAllowed", d.refusal)
	case stored != nil && stored.Status == metav1.ConditionFalse && !settled:
		c.False(v1alpha1.ConditionAcceptanceAllowed, stored.Reason, stored.Message)
	default:
		c.True(v1alpha1.ConditionAcceptanceAllowed, "NotRefused", "no guard refuses the last request to accept")
	}
}

func setDegraded(c condition.Set, status *v1alpha1.BaselineStatus) {
	c.Degraded("no two writers undo each other's changes", degradations(status)...)
}

func fightMessage(contention *v1alpha1.Contention) string {
	message := "writers keep undoing each other"
	if len(contention.With) > 0 {
		message += ": " + strings.Join(contention.With, ", ")
	}
	var places []string
	for _, place := range contention.Places[:min(len(contention.Places), maxPathsTold)] {
		places = append(places, cmp.Or(place.Path, "the object as a whole"))
	}
	if len(places) > 0 {
		message += "; at " + strings.Join(places, ", ")
	}
	if more := len(contention.Places) - len(places); more > 0 {
		message += fmt.Sprintf(" and %d more", more)
	}
	return message
}

func inSyncMessage(masks []v1alpha1.Mask) string {
	if len(masks) == 0 {
		return "the object has its authorized content"
	}
	return fmt.Sprintf("the object has its authorized content; expected writers moved %d fields", len(masks))
}

// driftedReason begins with Drifted and ends with the worst finding's type.
func driftedReason(findings []v1alpha1.Finding) string {
	if len(findings) == 0 {
		return "Drifted"
	}
	return "Drifted" + string(findings[0].Type)
}

// driftMessage names the worst paths and who changed them.
func driftMessage(status *v1alpha1.BaselineStatus) string {
	told := make([]string, 0, maxPathsTold)
	for _, f := range status.Findings[:min(len(status.Findings), maxPathsTold)] {
		told = append(told, findingText(&f))
	}
	message := strings.Join(told, "; ")
	if more := int(status.FindingsTotal) - len(told); more > 0 {
		message += fmt.Sprintf("; and %d more", more)
	}
	return message
}

func findingText(f *v1alpha1.Finding) string {
	path := f.Path
	if path == "" {
		path = "the object"
	}
	return fmt.Sprintf("%s %s by %s", path, strings.ToLower(string(f.Operation)), actorText(f.Actor))
}

func actorText(a v1alpha1.Actor) string {
	switch {
	case a.User != "":
		return a.User
	case a.FieldManager != "":
		return fmt.Sprintf("an unknown user (field manager %s)", a.FieldManager)
	default:
		return "an unknown user"
	}
}
