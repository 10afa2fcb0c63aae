// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/checks"
	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/internal/guarddefaults"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

// ConditionRecreatable says of an object that is Missing whether a RemediationPlan
// may create it again; its reason is a [resync.DeletionReason]. It is False on other
// Baselines.
const ConditionRecreatable = "Recreatable"

// Reasons of events that the reconciler itself makes.
const (
	reasonRecreatable    specguard.EventReason = "Recreatable"
	reasonNotRecreatable specguard.EventReason = "NotRecreatable"
	reasonCheckSetting   specguard.EventReason = "CheckSettingRefused"
	// reasonVersionsDropped says that versions were not kept until they were judged.
	reasonVersionsDropped specguard.EventReason = "VersionsDropped"
)

// maxRequest bounds the part of a check request that counts, in bytes.
const maxRequest = 256

// Defaults tells which GuardDefaults are in force; the controller of GuardDefaults does.
type Defaults interface {
	Active() *guarddefaults.Active
}

// resolve finds what holds for the checks and repairs of the object.
func (r *Reconciler) resolve(s *subject, defaults *guarddefaults.Active) resync.Settings {
	return defaults.Resolve(s.context.environmentName, resync.Hierarchy{
		Annotations:   s.annotations(),
		GVK:           canon.GVK(s.key.GroupVersionKind),
		Guards:        s.rules.Checks(),
		Option:        r.Config.ResyncPeriod,
		DriftInterval: r.Config.DriftInterval,
	})
}

// annotations are those of the object, or of its last version that is known. What
// it may have asked for is not known any more if it was gone when this process
// started: if it was not checked, it counts as one that asked for that, as far as
// its guards allow it to ask. Nothing is created again because of a restart.
func (s *subject) annotations() map[string]string {
	if last := s.lastAnnotations(); last != nil {
		return last
	}
	if s.baseline != nil && s.baseline.Status.LastCheckTime != nil && s.baseline.Status.NextCheckTime == nil {
		return map[string]string{v1alpha1.AnnotationResyncPeriod: "0s"}
	}
	return nil
}

// lastAnnotations are those of the last version that is known, nil if none is.
func (s *subject) lastAnnotations() map[string]string {
	last := s.view.Current
	for i := len(s.view.Pending) - 1; last == nil && i >= 0; i-- {
		last = s.view.Pending[i].Prev
	}
	switch {
	case last == nil:
		return s.asked
	case last.Annotations == nil:
		return map[string]string{}
	default:
		return last.Annotations
	}
}

// request is what a person asks by annotation and no check has answered.
func request(b *v1alpha1.Baseline) string {
	value := diff.TruncateText(b.Annotations[v1alpha1.AnnotationCheckRequested], maxRequest)
	if value == b.Status.CheckRequested {
		return ""
	}
	return value
}

// setChecks tells when the object was checked and when it is next. Only a check,
// or a change, moves the time that the period counts from: a look at what the watch
// knows anyway would put the check off for ever.
func (r *Reconciler) setChecks(s *subject, next *v1alpha1.BaselineStatus) {
	before := &s.baseline.Status
	switch {
	case changed(before, next): // as the rules have it: now
	case s.check != nil:
		next.LastCheckTime = &metav1.Time{Time: s.check.At}
	default:
		next.LastCheckTime = before.LastCheckTime
	}
	if s.check != nil && s.check.Request != "" {
		next.CheckRequested = s.check.Request
	}
	next.NextCheckTime = nil
	if next.RetirementTime != nil {
		return
	}
	t := s.timing(next)
	t.Stored = timeOf(before.NextCheckTime)
	if due := resync.NextCheck(t); !due.At.IsZero() {
		next.NextCheckTime = &metav1.Time{Time: due.At}
	}
}

// changed says that the object is another one than the Baseline told of.
func changed(before, next *v1alpha1.BaselineStatus) bool {
	a, b := &before.Observed, &next.Observed
	return before.LastCheckTime == nil || a.UID != b.UID || a.FullHash != b.FullHash ||
		(a.Hash == specguard.HashAbsent) != (b.Hash == specguard.HashAbsent)
}

// timing is what the next check depends on, by a status.
func (s *subject) timing(status *v1alpha1.BaselineStatus) resync.Timing {
	return resync.Timing{
		UID: status.Observed.UID, Period: s.settings.Period.Value,
		LastCheck: timeOf(status.LastCheckTime), Stored: timeOf(status.NextCheckTime), Now: s.now,
	}
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// appoint puts the object on the agenda of checks as its Baseline has it now, or
// takes it off.
func (r *Reconciler) appoint(s *subject) {
	if s.baseline == nil || s.unguarded() || !s.baseline.Guarded() {
		r.Agenda.Forget(s.key)
		return
	}
	status := &s.baseline.Status
	found := checks.Appointment{
		Timing: s.timing(status), Environment: s.context.environmentName,
		Told:    checks.Told{UID: status.Observed.UID, Hash: status.Observed.Hash, FullHash: status.Observed.FullHash},
		Request: request(s.baseline), Claim: status.PlanName, Recheck: s.settings.RecheckInterval.Value,
	}
	if status.RetirementTime != nil {
		found.Timing.Period = 0
	}
	found.Settled = r.settled(s)
	r.Agenda.Note(s.key, found, s.now)
}

// settled says what stands against a check. Whether a claim still holds is asked
// when the check is due.
func (r *Reconciler) settled(s *subject) resync.Obstacle {
	unclaimed := *s.baseline
	unclaimed.Status.PlanName = ""
	view := r.Objects.View(s.key)
	switch obstacle := resync.Settled(&unclaimed, r.Agenda.FailuresOf(s.key)); {
	case obstacle != resync.ObstacleNone:
		return obstacle
	case len(view.Pending) > 0:
		return resync.ObstacleLagging
	case view.Current != nil && view.Current.DeletionTimestamp != nil:
		return resync.ObstacleDeleting
	default:
		return resync.ObstacleNone
	}
}

// setRecreatable tells what follows from the object's being gone.
func (r *Reconciler) setRecreatable(s *subject, b *v1alpha1.Baseline) {
	c := condition.Set{Conditions: &b.Status.Conditions, Generation: b.Generation, Now: s.now}
	switch {
	case b.Status.State == v1alpha1.StateRetired:
		c.False(ConditionRecreatable, string(resync.ReasonRetired), "the writer that removed the object may do so")
		return
	case b.Status.State != v1alpha1.StateMissing:
		c.False(ConditionRecreatable, "NotMissing", "the object is not missing")
		return
	}
	consequence, reason := resync.Deleted(s.deletion(b))
	status := metav1.ConditionFalse
	if consequence == resync.Recreate {
		status = metav1.ConditionTrue
	}
	c.Put(ConditionRecreatable, status, string(reason), s.recreationMessage(reason))
}

func (s *subject) deletion(b *v1alpha1.Baseline) resync.Deletion {
	d := resync.DeletionOf(b)
	d.NamespaceTerminating, d.Guarded = s.terminating, !s.unguarded()
	d.Management, d.Resync = s.settings.Management.Value, s.settings.On()
	return d
}

func (s *subject) recreationMessage(reason resync.DeletionReason) string {
	const helps = "create it, or accept that it is gone"
	switch reason {
	case resync.ReasonDeletedOutOfBand:
		return "a RemediationPlan may create it again"
	case resync.ReasonImported:
		return "it is older than its guard, and a new object would not be the one that was lost: " + helps
	case resync.ReasonResyncOff:
		return fmt.Sprintf("scheduled checks of it are off (%s), so it is not created again: %s", s.settings.Period.From, helps)
	case resync.ReasonUnattributed:
		return "no record names the user of the deletion, so it is not recreated: " + helps
	case resync.ReasonBodyTooLarge:
		return "its authorized body was too large to be kept, so it is not created again: " + helps
	case resync.ReasonUnmanaged:
		return fmt.Sprintf("%s leaves it unmanaged: it is not remediated", s.settings.Management.From)
	case resync.ReasonNamespaceTerminating:
		return "its namespace is being deleted"
	case resync.ReasonRetired, resync.ReasonNotGuarded, resync.ReasonNeverAuthorized:
		return "nothing is done"
	default:
		return "nothing is done"
	}
}
