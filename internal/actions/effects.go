// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// SortAssessments puts assessments that have not ended first, and the newest first among these.
func SortAssessments(all []v1alpha1.EffectivenessAssessment) {
	ended := func(a *v1alpha1.EffectivenessAssessment) int {
		if effect.Phase(a.Status.Phase).Ended() {
			return 1
		}
		return 0
	}
	slices.SortFunc(all, func(x, y v1alpha1.EffectivenessAssessment) int {
		return cmp.Or(cmp.Compare(ended(&x), ended(&y)), y.CreationTimestamp.Compare(x.CreationTimestamp.Time), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
}

// SelectAssessments returns the assessments of writes of one object, the newest first.
func SelectAssessments(all []v1alpha1.EffectivenessAssessment, baseline string) []v1alpha1.EffectivenessAssessment {
	of := slices.DeleteFunc(slices.Clone(all), func(a v1alpha1.EffectivenessAssessment) bool { return a.Spec.Target.BaselineName != baseline })
	slices.SortFunc(of, func(x, y v1alpha1.EffectivenessAssessment) int {
		return cmp.Or(y.CreationTimestamp.Compare(x.CreationTimestamp.Time), cmp.Compare(y.Name, x.Name))
	})
	return of
}

// RepairOf returns the write that an assessment is about; wrote is false if nothing was written.
func RepairOf(a *v1alpha1.EffectivenessAssessment) (r effect.Repair, wrote bool) {
	if a.Spec.Execution == v1alpha1.ExecutionNone || a.Spec.WrittenTime == nil {
		return effect.Repair{}, false
	}
	r = effect.Repair{WrittenTime: a.Spec.WrittenTime.Time, PreHash: a.Spec.PreHash, PostHash: a.Spec.PostHash, Verdict: effect.Verdict(a.Status.Verdict)}
	switch of := &a.Spec.Subject; {
	case of.Plan != nil:
		r.Plan = a.Namespace + "/" + of.Plan.Name
	case of.Release != nil:
		r.Plan = fmt.Sprintf("run %d of %s/%s", of.Release.Run, a.Namespace, of.Release.Name)
	}
	return r, true
}

// isLike says that two assessments are about one action on one target, or on one release.
func isLike(a, of *v1alpha1.EffectivenessAssessment) bool {
	one, other := a.Spec.Subject.Release, of.Spec.Subject.Release
	switch {
	case a.Spec.Action != of.Spec.Action, (one == nil) != (other == nil):
		return false
	case one != nil:
		return one.UID == other.UID
	}
	return a.Spec.Target.UID == of.Spec.Target.UID
}

// FindLiveHash returns the hash with which the write of an assessment is compared: of the step of a plan guarded,
// which is that of the Baseline, and of the run of a release the one that was read last of what serves it. All is
// sorted as [SortAssessments] does.
func FindLiveHash(all []v1alpha1.EffectivenessAssessment, of *v1alpha1.EffectivenessAssessment, guarded string) string {
	run := of.Spec.Subject.Release
	if run == nil {
		return guarded
	}
	for i := range all {
		if other := all[i].Spec.Subject.Release; other != nil && other.UID == run.UID && all[i].Status.CurrentHash != "" {
			return all[i].Status.CurrentHash
		}
	}
	return ""
}

// FindRunChain looks for a chain in the runs of a release that did what the run of an assessment did. The planner
// looks for those of plans. All is sorted as [SortAssessments] does.
func FindRunChain(all []v1alpha1.EffectivenessAssessment, of *v1alpha1.EffectivenessAssessment, now time.Time) effect.Chain {
	var history []effect.Repair
	for i := range all {
		if r, wrote := RepairOf(&all[i]); wrote && isLike(&all[i], of) {
			history = append(history, r)
		}
	}
	return effect.FindChain(history, FindLiveHash(all, of, ""), now, time.Time{})
}

// CountRecent counts the writes of an action on the object, or the release, of an assessment within the time in which too
// many of them are a chain.
func CountRecent(all []v1alpha1.EffectivenessAssessment, of *v1alpha1.EffectivenessAssessment, now time.Time) int {
	n := 0
	for i := range all {
		a := &all[i]
		if r, wrote := RepairOf(a); wrote && isLike(a, of) && effect.IsRecent(r, now) {
			n++
		}
	}
	return n
}

// EffectGate is one thing that an assessment waits for.
type EffectGate struct {
	Name string `json:"name"`
	// Passed says that the assessment does not wait for it any more.
	Passed bool `json:"passed"`
	// Value is what is known now.
	Value string `json:"value"`
	// Until is when the gate passes, or ends the assessment, by time alone; nil if it does not.
	Until *time.Time `json:"until,omitempty"`
}

// ListEffectGates says what an assessment waits for, until when, and what is known now. An assessment
// that has ended waits for nothing.
func ListEffectGates(a *v1alpha1.EffectivenessAssessment, now time.Time) []EffectGate {
	stored := effect.ReadStored(a)
	if !stored.Executed {
		value := "the step did not write"
		if a.Spec.Subject.Release != nil {
			value = "the run moved no requests"
		}
		return []EffectGate{{Name: "Execution", Passed: true, Value: value}}
	}
	s := stored.Schedule(stored.WrittenTime)
	at := func(name string, until time.Time, before, after string) EffectGate {
		if !now.Before(until) {
			return EffectGate{Name: name, Passed: true, Value: after}
		}
		return EffectGate{Name: name, Value: before, Until: &until}
	}
	gates := []EffectGate{
		at("Propagation", s.Propagated, "the write may not have arrived yet", "the write has arrived"),
		at("Stabilization", s.Stabilized, "the workload is left alone", "the workload had its time"),
		hashGate(a),
	}
	for _, name := range []effect.Name{effect.Health, effect.Alerts, effect.Metrics} {
		from := s.Stabilized
		if name == effect.Alerts {
			from = s.Alerts
		}
		g := componentGate(name, stored.Of(name), from, now)
		if effect.Phase(a.Status.Phase).Ended() && !g.Passed {
			g = EffectGate{Name: g.Name, Passed: true, Value: "not assessed before the end"}
		}
		gates = append(gates, g)
	}
	if effect.Phase(a.Status.Phase).Ended() {
		return gates
	}
	return append(gates, at("Deadline", s.Deadline, "an answer that is missing is waited for", "the assessment has expired"))
}

func hashGate(a *v1alpha1.EffectivenessAssessment) EffectGate {
	g := EffectGate{Name: "Hash"}
	switch a.Status.Integrity {
	case v1alpha1.IntegrityUnchanged:
		g.Passed, g.Value = true, "as the write left it: "+ShortenHash(a.Spec.PostHash)
	case v1alpha1.IntegrityDrifted:
		g.Passed, g.Value = true, "changed since the write: "+cmp.Or(ShortenHash(a.Status.CurrentHash), "the target is gone")
	case v1alpha1.IntegrityUnknown, "":
		g.Value = "not known whether it is as the write left it"
	}
	return g
}

func componentGate(name effect.Name, c *effect.Component, from, now time.Time) EffectGate {
	g := EffectGate{Name: string(name)}
	switch c.State {
	case effect.Assessed:
		g.Passed, g.Value = true, cmp.Or(c.Why, "assessed")
	case effect.NotConfigured:
		g.Passed, g.Value = true, "not configured"
	case effect.NotAnswered:
		g.Value = "no answer that counts, and asked again: " + c.Why
	case effect.NotAssessed:
		g.Value = "not asked yet"
		if now.Before(from) {
			g.Value, g.Until = "asked from then on", &from
		}
	}
	return g
}

// FormatScore gives a score in basis points with a separator: 9,580.
func FormatScore(score int32) string {
	if score < 1000 {
		return fmt.Sprint(score)
	}
	return fmt.Sprintf("%d,%03d", score/1000, score%1000)
}
