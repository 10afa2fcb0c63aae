// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// HashAbsent stands for the hash of an object that is gone; to accept that it
// is gone, accept.hash must say so.
const HashAbsent = "absent"

// Bounds of what a Baseline shows and of what is remembered between steps.
const (
	maxFindings  = 64
	maxTracked   = 512 // findings kept in memory with their actors
	maxMasks     = 32
	maxReversals = 16
	maxPending   = 16
	maxTrail     = 64
	maxValue     = 1024 // bytes of a value shown
)

// State is everything that is known of one guarded object. Keep it in memory
// between steps: what it remembers beyond the Baseline only makes attribution
// of late records and of fights better, never authorizes.
type State struct {
	// Name of the Baseline; names of revisions follow from it.
	Name   string
	Target v1alpha1.BaselineTarget
	// Authorized is nil when nobody who is trusted created the object.
	Authorized *v1alpha1.AuthorizedState
	// Body is the authorized body in canonical form; nil when not loaded.
	Body []byte
	// Drift is empty for an object that was never seen.
	Drift    v1alpha1.DriftState
	Observed v1alpha1.ObservedState
	// Findings, worst first; at most 64 of them are shown.
	Findings      []v1alpha1.Finding
	FindingsTotal int
	Masks         []v1alpha1.Mask
	FirstSeen     time.Time
	RetiredAt     time.Time
	CheckedAt     time.Time
	Reversals     []Reversal
	Contention    *v1alpha1.Contention
	// Oversized is the newest authorized state if its body is too large to be kept;
	// Authorized is the one before then, and Drift is Unknown.
	Oversized *v1alpha1.OversizedBody
	// Selection is nil for an object that was never seen under a guard, and for one
	// whose Baseline only names its guards.
	Selection *v1alpha1.Selection
	// BodyLost: the authorized body is gone, and so Drift is Unknown.
	// Observed.Hash is what an accept would authorize. Each Step finds it anew.
	BodyLost bool

	pending []pendingWrite
	trail   []trailEntry
	// contested are the places that the present contention is about.
	contested []ReversalPlace
}

// Reversal is one change between InSync and Drifted, or back to an earlier value.
type Reversal struct {
	At time.Time
	// Places are where it was made, at most 16.
	Places []ReversalPlace
}

// ReversalPlace is one place of a reversal, and who changed it; By is empty for an
// expected writer and where nobody is known.
type ReversalPlace struct {
	// Path is the root for an object that was deleted or created.
	Path canon.Path
	// Order: what changed is the order of the list at Path alone.
	Order bool
	By    string
	Class v1alpha1.ActorClass
}

// pendingWrite is a write that has no credible author yet, with what its record will say.
type pendingWrite struct {
	before     string // resourceVersion
	generation int64
	fullHash   string
	replicas   string // canonical number, empty when not a change of replicas
	stamp      Identity
	paths      map[string]string // digests of what the write left
}

// trailEntry remembers the value of a path before its last change, and who
// made that change.
type trailEntry struct {
	path   string
	before string // digest
	after  string
	by     string
}

// NewState is the state of an object that was never seen. name is its
// BaselineName.
func NewState(name string, target v1alpha1.BaselineTarget) State {
	return State{Name: name, Target: target}
}

// FromBaseline reads a stored Baseline; body is the authorized body, canonical,
// or nil when it is not loaded (see NeedsBody).
func FromBaseline(b *v1alpha1.Baseline, body []byte) State {
	st := State{
		Name:          b.Name,
		Target:        b.Spec.Target,
		Authorized:    b.Spec.Authorized.DeepCopy(),
		Body:          body,
		Drift:         b.Status.State,
		Observed:      b.Status.Observed,
		Findings:      slices.Clone(b.Status.Findings),
		FindingsTotal: int(b.Status.FindingsTotal),
		Masks:         slices.Clone(b.Status.Masks),
		FirstSeen:     timeOf(b.Status.FirstSeenTime),
		RetiredAt:     timeOf(b.Status.RetirementTime),
		CheckedAt:     timeOf(b.Status.LastCheckTime),
		Contention:    b.Status.Contention.DeepCopy(),
		Oversized:     b.Status.Oversized.DeepCopy(),
		Selection:     b.Status.Selection.DeepCopy(),
	}
	st.readReversals(&b.Status)
	return st
}

// WriteStatus fills in what Step decides. Conditions, severity, the next check,
// the claim, the guards and observedGeneration are the caller's.
func (s State) WriteStatus(status *v1alpha1.BaselineStatus) {
	status.State = s.Drift
	status.Observed = *s.Observed.DeepCopy() // the metadata may be shared
	status.Oversized = s.Oversized.DeepCopy()
	status.Findings = slices.Clone(s.Findings[:min(len(s.Findings), maxFindings)])
	status.FindingsTotal = int32(min(s.FindingsTotal, 1<<31-1))
	status.Masks = slices.Clone(s.Masks)
	status.FirstSeenTime = timeTo(s.FirstSeen)
	status.RetirementTime = timeTo(s.RetiredAt)
	status.LastCheckTime = timeTo(s.CheckedAt)
	status.Selection = s.Selection.DeepCopy()
	s.writeReversals(status)
}

// clone copies what Step changes, so that the caller's state stays as it was.
func (s State) clone() State {
	s.Authorized = s.Authorized.DeepCopy()
	s.Contention = s.Contention.DeepCopy()
	s.Oversized = s.Oversized.DeepCopy()
	s.Selection = s.Selection.DeepCopy()
	s.Findings = slices.Clone(s.Findings)
	s.Masks = slices.Clone(s.Masks)
	s.Reversals = slices.Clone(s.Reversals)
	s.pending = slices.Clone(s.pending)
	s.trail = slices.Clone(s.trail)
	s.contested = slices.Clone(s.contested)
	return s
}

// authorizes tells whether an authorized body is in force: there is one, and
// its object was not retired.
func (s State) authorizes() bool { return s.Authorized != nil && s.RetiredAt.IsZero() }

func (s State) gvk() canon.GVK { return canon.ParseGVK(s.Target.APIVersion, s.Target.Kind) }

// RetentionOver tells whether a retired Baseline whose object has not come back
// may be removed.
func RetentionOver(s State, retention time.Duration, now time.Time) bool {
	return !s.RetiredAt.IsZero() && s.Observed.Hash == HashAbsent && now.Sub(s.RetiredAt) >= retention
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func timeTo(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	v := metav1.NewTime(t)
	return &v
}
