// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// objection is why a work is not carried out, for good or for now.
type objection struct {
	reason  v1alpha1.ReleaseWorkReason
	message string
	// waits says that the objection can go by itself.
	waits bool
}

func object(reason v1alpha1.ReleaseWorkReason, format string, args ...any) *objection {
	return &objection{reason: reason, message: fmt.Sprintf(format, args...)}
}

// objectTo returns the first objection to a work that has not written; nil if there is none.
func objectTo(f *Facts) *objection {
	if f.Unread != "" {
		return &objection{v1alpha1.WorkUnreadable, f.Unread, true}
	}
	for _, check := range checksOf(f) {
		if o := check(f); o != nil {
			return o
		}
	}
	return nil
}

// checksOf returns what is asked before a work is carried out, in order.
func checksOf(f *Facts) []func(*Facts) *objection {
	spec := &f.Work.Spec
	checks := []func(*Facts) *objection{objectToRelease, objectToExecutor}
	switch {
	case scalesGroup(f):
		if !givesBack(f) {
			checks = append(checks, objectToForward, objectToGroups)
		}
		return append(checks, objectToGroup, objectToOrder, objectToPlan, objectToCapacity, objectToRequester, objectToTrust, objectToEvidence)
	case PutsBack(spec):
		return append(checks, objectToOrder)
	case Holds(spec):
		return append(checks, objectToForward, objectToAutoscaler, objectToOrder, objectToRequester, objectToTrust, objectToEvidence)
	case !ScalesToZero(spec):
		checks = append(checks, objectToForward, objectToBaseline)
	}
	return append(checks, objectToTarget, objectToOrder, objectToPlan, objectToRequester, objectToTrust, objectToChange, objectToEvidence)
}

// objectToRelease compares the release and the run with those of the work.
func objectToRelease(f *Facts) *objection {
	spec, r := &f.Work.Spec, f.Release
	switch {
	case r == nil:
		return object(v1alpha1.WorkReleaseGone, "the ABRelease %s does not exist", spec.ReleaseName)
	case string(r.UID) != spec.ReleaseUID:
		return object(v1alpha1.WorkReleaseReplaced, "the ABRelease %s has another uid than the work names", spec.ReleaseName)
	case r.Status.Rollout == nil || r.Status.Rollout.Run == nil:
		return object(v1alpha1.WorkRunOver, "the ABRelease %s has no run", spec.ReleaseName)
	case r.Status.Rollout.Run.Number != spec.Run:
		return object(v1alpha1.WorkRunOver, "the work is for run %d, and the ABRelease %s is at run %d", spec.Run, spec.ReleaseName, r.Status.Rollout.Run.Number)
	}
	return nil
}

// objectToForward is about all that makes the cluster do more.
func objectToForward(f *Facts) *objection {
	switch state := f.Release.Status.Rollout.Run.State; {
	case f.Release.DeletionTimestamp != nil:
		return object(v1alpha1.WorkReleaseDeleted, "the ABRelease %s is being deleted", f.Release.Name)
	case rollout.RunState(state).Ended():
		return object(v1alpha1.WorkRunOver, "run %d of the ABRelease %s is %s", f.Work.Spec.Run, f.Release.Name, state)
	case f.Halted != "":
		return object(v1alpha1.WorkHalted, "%s", f.Halted)
	case f.Release.Spec.Rollout == nil || f.Release.Spec.Rollout.RequestedBy == "":
		return object(v1alpha1.WorkInvalidSpec, "spec.rollout.requestedBy: the executor acts with the permissions of a user: name the user")
	}
	return nil
}

// objectToBaseline compares the live baseline with what the work was decided on.
func objectToBaseline(f *Facts) *objection {
	name := BaselineName(f.Release)
	switch {
	case name == "":
		return object(v1alpha1.WorkInvalidSpec, "spec.stable: a clone is made from a Deployment: the stable variation does not name one")
	case f.ServiceMissing:
		return object(v1alpha1.WorkInvalidSpec, "spec.serviceName: the Service %s does not exist", f.Release.Spec.ServiceName)
	case f.Baseline == nil:
		return object(v1alpha1.WorkBaselineGone, "the Deployment %s of the stable variation does not exist", name)
	case f.Baseline.GetDeletionTimestamp() != nil:
		return object(v1alpha1.WorkTerminating, "the Deployment %s is being deleted", name)
	case f.Work.Spec.Verb == v1alpha1.WorkUpdateBaseline && f.Tool != "":
		return object(v1alpha1.WorkGitOpsOwned, "%s applies the Deployment %s and would take the change back: use the promotion AwaitBaseline, and merge the change", f.Tool, name)
	}
	if hash, err := clone.TemplateHash(f.Baseline); err != nil || hash != f.Work.Spec.ExpectedHash {
		return object(v1alpha1.WorkBaselineChanged, "the pod template of the Deployment %s is not the one that the work was decided on", name)
	}
	return nil
}

// objectToChange compares the change that the release asks for with the one that the requests of the run have
// proved: a change of the spec that the discovery server has not seen yet belongs to the next run.
func objectToChange(f *Facts) *objection {
	spec := &f.Work.Spec
	if spec.Verb != v1alpha1.WorkUpdateBaseline {
		return nil
	}
	body, err := clone.BodyOf(f.Release, spec.Variation, f.Baseline, f.Service, 0)
	if err != nil {
		return nil // the decision about the body refuses it with the field
	}
	if hash, err := clone.TemplateHash(body); err != nil || hash != f.Release.Status.Rollout.Run.To.Hash {
		return object(v1alpha1.WorkInvalidSpec, "spec.variations: the release asks for another change than the one that run %d has measured", spec.Run)
	}
	return nil
}

// objectToTarget is about what has the name of the clone.
func objectToTarget(f *Facts) *objection {
	spec := &f.Work.Spec
	if spec.Verb == v1alpha1.WorkUpdateBaseline {
		if f.Release.Spec.Rollout.Promotion != v1alpha1.PromotionUpdateBaseline {
			return object(v1alpha1.WorkInvalidSpec, "spec.rollout.promotion: the release does not ask for UpdateBaseline")
		}
		return nil
	}
	name := v1alpha1.CloneName(spec.ReleaseName, spec.Variation)
	switch {
	case f.Clone != nil && !clone.Owned(f.Release, f.Clone):
		return object(v1alpha1.WorkNotOwned, "a Deployment %s exists that is no clone of the ABRelease %s: rename it, or rename the variation", name, spec.ReleaseName)
	case f.Clone == nil && spec.Verb == v1alpha1.WorkScale && !ScalesToZero(spec):
		return object(v1alpha1.WorkCloneGone, "the clone %s does not exist", name)
	case f.Clone != nil && f.Clone.GetDeletionTimestamp() != nil && !ScalesToZero(spec):
		o := object(v1alpha1.WorkTerminating, "the Deployment %s is being deleted", name)
		o.waits = true
		return o
	}
	return nil
}

// objectToOrder has a work wait for the works before it.
func objectToOrder(f *Facts) *objection {
	if f.Earlier == "" {
		return nil
	}
	return &objection{v1alpha1.WorkQueued, "the ReleaseWork " + f.Earlier + " has not ended", true}
}

// objectToPlan has a work wait while a plan writes the target. A plan that finds the run under way lets
// go, so the two do not wait for each other.
func objectToPlan(f *Facts) *objection {
	if f.Plan == "" {
		return nil
	}
	return &objection{v1alpha1.WorkTargetClaimed, "the RemediationPlan " + f.Plan + " holds the Deployment " + TargetName(f.Work, f.Release), true}
}

// objectToExecutor asks whether the executor may write. The right is the installation's to give, so
// the work waits for it. Without the right the executor reads no target.
func objectToExecutor(f *Facts) *objection {
	switch f.Executor.Right {
	case RightMissing:
		return &objection{v1alpha1.WorkNotAllowed, f.Executor.Denied, true}
	case RightUnknown:
		return &objection{v1alpha1.WorkUnreadable, "it is not known whether the executor may write", true}
	case RightGiven:
	}
	return nil
}

// objectToRequester asks whether the author of the release may write. A Scale to 0 needs no right of
// the author, so a clone does not outlive the rights of a user who is gone.
func objectToRequester(f *Facts) *objection {
	if givesBack(f) {
		return nil
	}
	switch f.Requester.Right {
	case RightMissing:
		return object(v1alpha1.WorkNotAllowed, "%s", f.Requester.Denied)
	case RightUnknown:
		return &objection{v1alpha1.WorkUnreadable, "it is not known whether the requester may write", true}
	case RightGiven:
	}
	return nil
}

// objectToEvidence has a work wait while no signed record can be stored. To take back waits for no record.
func objectToEvidence(f *Facts) *objection {
	if f.Unrecorded == "" || !NeedsRecord(f.Work, f.Release) {
		return nil
	}
	return &objection{v1alpha1.WorkEvidenceUnavailable, "the executor does not write without a record: " + f.Unrecorded, true}
}

// objectToTrust asks whether each guard of what the run writes trusts the author of the release. What the
// executor leaves would be drift otherwise. A person has to change the guard or the release, so the work
// waits.
func objectToTrust(f *Facts) *objection {
	if givesBack(f) || f.Distrusting == "" {
		return nil
	}
	who := f.Release.Spec.Rollout.RequestedBy
	return &objection{v1alpha1.WorkRequesterNotTrusted, fmt.Sprintf(
		"%s does not trust %s, the user in spec.rollout.requestedBy: add the user to spec.trustedWriters of the guard, or let a user that the guard trusts change the release",
		f.Distrusting, who), true}
}
