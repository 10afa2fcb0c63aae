// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"cmp"
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// AnnotationDriftDetection with the value true asks for checks of the object
// without saying how often. It counts when nobody says a period at any level, and
// then means the drift interval of the installation.
const AnnotationDriftDetection = "plumbline.dev/enable-drift-detection"

// driftDetection is the wish for checks. It weakens no guard, for it counts only
// where no guard says anything, so objectOverride does not forbid it.
func (r *resolver) driftDetection() []Voice[time.Duration] {
	text, ok := r.h.Annotations[AnnotationDriftDetection]
	switch {
	case !ok || text == "false":
		return nil
	case text == "true":
		return []Voice[time.Duration]{{AnnotationDriftDetection, cmp.Or(r.h.DriftInterval, DriftDetectionPeriod)}}
	default:
		p := &InputError{Kind: ProblemNotABoolean, Text: quoted(text), Detail: "neither true nor false"}
		r.problem(p.at(LevelDriftDetection, AnnotationDriftDetection))
		return nil
	}
}

// override lets the object's own annotation speak, as far as its guards allow.
// Whoever may edit an object may make its checks rarer if they all say so, and
// never more frequent: the load is not theirs. Where nobody says a period there
// is nothing to be shortened, and the annotation may ask for one.
func (r *resolver) override(rest Answer[time.Duration]) Answer[time.Duration] {
	text, ok := r.h.Annotations[v1alpha1.AnnotationResyncPeriod]
	if !ok {
		return rest.below(Step[time.Duration]{Level: LevelObject, Verdict: VerdictSilent})
	}
	step := Step[time.Duration]{Level: LevelObject, Verdict: VerdictRefused}
	period, problem := parsePeriod(text)
	if problem == nil {
		step.Voices = []Voice[time.Duration]{{v1alpha1.AnnotationResyncPeriod, period}}
		problem = r.objection(period, rest)
	}
	if problem == nil {
		step.Verdict = VerdictDecides
		return rest.below(step)
	}
	step.Problem = problem.at(LevelObject, v1alpha1.AnnotationResyncPeriod)
	step.Problem.Text = quoted(text)
	r.problem(step.Problem)
	return rest.below(step)
}

// objection says why a period that an object asks for does not count; nil if it
// does.
func (r *resolver) objection(period time.Duration, rest Answer[time.Duration]) *InputError {
	allowed := strictestOverride(r.h.Guards)
	unsaid := rest.Level == LevelDriftDetection || rest.Level == LevelBuiltIn
	switch {
	case allowed == v1alpha1.ObjectOverrideForbidden:
		return &InputError{Kind: ProblemOverrideForbidden, Detail: "the guards' objectOverride is Forbidden; " + stays(rest)}
	case period == 0 && allowed != v1alpha1.ObjectOverrideStop:
		return &InputError{Kind: ProblemMayNotStop, Detail: "the guards' objectOverride is Lengthen, not Stop; " + stays(rest)}
	case period == 0, unsaid:
		return nil
	case rest.Value == 0, period < rest.Value:
		return &InputError{Kind: ProblemMayNotShorten, Detail: "an annotation makes checks rarer, never more frequent; " + stays(rest)}
	default:
		return nil
	}
}

func stays(rest Answer[time.Duration]) string {
	return fmt.Sprintf("%s of %s stays", short(rest.Value), rest.From)
}

// strictestOverride is what all guards allow. What is not known allows nothing.
func strictestOverride(guards []Guard) v1alpha1.ObjectOverride {
	strictest := v1alpha1.ObjectOverrideStop
	for _, g := range guards {
		switch g.Override {
		case v1alpha1.ObjectOverrideStop:
		case v1alpha1.ObjectOverrideLengthen:
			strictest = v1alpha1.ObjectOverrideLengthen
		case v1alpha1.ObjectOverrideForbidden:
			return v1alpha1.ObjectOverrideForbidden
		default:
			return v1alpha1.ObjectOverrideForbidden
		}
	}
	return strictest
}
