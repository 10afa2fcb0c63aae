// SPDX-License-Identifier: Apache-2.0

package work

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Facts are what the decision about a work depends on, read live.
type Facts struct {
	// Work as it is stored.
	Work *v1alpha1.ReleaseWork
	// Release that the work names; nil if it does not exist.
	Release *v1alpha1.ABRelease
	// Baseline is the Deployment of the stable variation, and Clone what has the name of the
	// clone; nil if they do not exist.
	Baseline, Clone *unstructured.Unstructured
	// Service is the selector of the release's Service. ServiceMissing says that the Service
	// does not exist.
	Service        map[string]string
	ServiceMissing bool
	// Tool of GitOps that applies the baseline, or the autoscaler; empty if none does.
	Tool string
	// Requester says whether the user in whose name the work acts may write the target, and
	// Executor whether the executor may. Denied names the permission that is missing.
	Requester, Executor Permission
	// Autoscalers are those of the workload whose minimum the work raises, or the one whose minimum the work
	// puts back. Holding is what the works before hold; nil if they hold nothing.
	Autoscalers []*unstructured.Unstructured
	Holding     *v1alpha1.HeldAutoscaler
	// Groups are those of a release whose runs divide replicas; nil of another release. Autoscalers are then
	// those that scale either group.
	Groups *Groups
	// Earlier is the name of a work of the release with a lower number that has not ended; empty
	// if there is none. Works of a release end in their order, so the label of a later write
	// hides no earlier one.
	Earlier string
	// Distrusting names a guard that selects what the run writes and does not trust the user in whose
	// name the work acts; empty if there is none.
	Distrusting string
	// Plan is the name of the RemediationPlan that holds the target; empty if none does, or the plan
	// itself waits for the end of the run.
	Plan string
	// Halted tells who halted a ledger that counts for the namespace, and why; empty if none
	// is halted.
	Halted string
	// Recorded says that the intent of the work, as it is stored, has its signed record. Unrecorded tells why no
	// record can be stored now; empty if records can be stored, as far as it is known. Only a work that makes
	// the cluster do more waits for its record.
	Recorded   bool
	Unrecorded string
	// Unread tells what could not be read; empty if all of the above is known.
	Unread string
	// Tried and Wrote are the answers to the last dry run and write of this process, which
	// count for the target as it was then; nil before.
	Tried, Wrote *Answer
	// Now is the API server's time.
	Now time.Time
}

// Right says whether a user may write the target.
type Right int

// The rights.
const (
	// RightUnknown: the API server was not asked, or did not answer.
	RightUnknown Right = iota
	// RightGiven: the user may.
	RightGiven
	// RightMissing: the user may not.
	RightMissing
)

// Permission is an answer about a right, and what is missing.
type Permission struct {
	Right  Right
	Denied string
}

// Result is what came of a dry run or of a write.
type Result string

// The results. Only Lost leaves open whether the API server stored.
const (
	// Stored: the API server answered that it did, or would.
	Stored Result = "Stored"
	// Conflicted: the target has changed or is gone, and the API server did not store.
	Conflicted Result = "Conflicted"
	// Refused: the API server, or an admission policy, does not take this write.
	Refused Result = "Refused"
	// Lost: there is no answer.
	Lost Result = "Lost"
)

// Answer is what came of a dry run or of a write.
type Answer struct {
	Result Result
	// Message of the API server, if it did not store.
	Message string
	// ResourceVersion of the target that the request was made from; empty for a creation.
	ResourceVersion string
	// Object as the API server stored it, or would; nil if it did not store.
	Object *unstructured.Unstructured
}

// Kind says what is to be done next.
type Kind int

// The kinds of actions.
const (
	// Wait: nothing is to be done until something changes. Status tells for what.
	Wait Kind = iota
	// Try sends Body as a dry run.
	Try
	// Intend stores Status, which has the intent.
	Intend
	// Write sends Body.
	Write
	// Fence sends Body, which moves the resourceVersion and changes nothing else, so that a write
	// of an executor before cannot be stored any more.
	Fence
	// End stores Status, which is final.
	End
	// Done: the work has ended before.
	Done
	// Look reads all anew: the target has changed since.
	Look
)

// Action is what is to be done next.
type Action struct {
	Kind Kind
	// Status to store, of Wait, Intend and End.
	Status v1alpha1.ReleaseWorkStatus
	// Body to send, of Try, Write and Fence; Create says that there is no target yet.
	Body   *unstructured.Unstructured
	Create bool
	// Intended is when the intent of a creation was stored; now, for a dry run. The API server
	// admits the creation for a bounded time after that.
	Intended time.Time
}

// Final says whether a work in this phase has ended.
func Final(phase v1alpha1.ReleaseWorkPhase) bool {
	switch phase {
	case v1alpha1.WorkSucceeded, v1alpha1.WorkRefused, v1alpha1.WorkFailed:
		return true
	case v1alpha1.WorkPending, v1alpha1.WorkRunning, "":
		return false
	}
	return true // a phase that this version does not know: nothing is written
}

// ScalesToZero says whether a work scales a clone to 0.
func ScalesToZero(spec *v1alpha1.ReleaseWorkSpec) bool {
	return spec.Verb == v1alpha1.WorkScale && spec.Replicas != nil && *spec.Replicas == 0
}

// TargetName returns the name of the Deployment that a work is about; empty of a work about an autoscaler.
func TargetName(work *v1alpha1.ReleaseWork, release *v1alpha1.ABRelease) string {
	if ScalesGroup(work, release) {
		if group := release.Spec.GroupOf(work.Spec.Variation); group != nil {
			return group.Name
		}
		return ""
	}
	switch work.Spec.Verb {
	case v1alpha1.WorkUpdateBaseline:
		return BaselineName(release)
	case v1alpha1.WorkHoldMinReplicas:
		return ""
	case v1alpha1.WorkCreateClone, v1alpha1.WorkScale:
	}
	return v1alpha1.CloneName(work.Spec.ReleaseName, work.Spec.Variation)
}

// BaselineName returns the name of the Deployment of a release's stable variation; empty if the
// release names none.
func BaselineName(release *v1alpha1.ABRelease) string {
	if release == nil {
		return ""
	}
	for i := range release.Spec.Variations {
		v := &release.Spec.Variations[i]
		if v.Name == release.Spec.Stable && v.Workload != nil && v.Workload.Kind == v1alpha1.VariationDeployment {
			return v.Workload.Name
		}
	}
	return ""
}
