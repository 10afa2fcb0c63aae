// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// AssessmentPhaseOf is the phase of an assessment; one that no assessor has looked at is pending.
func AssessmentPhaseOf(x *v1alpha1.EffectivenessAssessment) v1alpha1.AssessmentPhase {
	return cmp.Or(x.Status.Phase, v1alpha1.AssessmentPending)
}

// NameSubject names the subject of an assessment.
func NameSubject(x *v1alpha1.EffectivenessAssessment) string {
	if plan := x.Spec.Subject.Plan; plan != nil {
		return fmt.Sprintf("plan %s, step %d", plan.Name, plan.Step)
	}
	if run := x.Spec.Subject.Release; run != nil {
		return fmt.Sprintf("release %s, run %d", run.Name, run.Run)
	}
	return "an unknown subject"
}

// DescribeEnd says how an assessment ended, or how far it is.
func DescribeEnd(x *v1alpha1.EffectivenessAssessment) string {
	s := &x.Status
	if s.Verdict == "" {
		return string(AssessmentPhaseOf(x))
	}
	words := string(s.Verdict)
	if s.Score != nil {
		words += fmt.Sprintf(", %s of %s", actions.FormatScore(*s.Score), actions.FormatScore(effect.Best))
	}
	return fmt.Sprintf("%s (%s)", words, s.Reason)
}

// DescribeIntegrity tells whether the written state is still in effect, by its hashes.
func DescribeIntegrity(x *v1alpha1.EffectivenessAssessment) string {
	state := "not known whether in effect"
	switch x.Status.Integrity {
	case v1alpha1.IntegrityUnchanged:
		state = "in effect"
	case v1alpha1.IntegrityDrifted:
		state = "not in effect any more"
	case v1alpha1.IntegrityUnknown, "":
	}
	unknown := func(hash string) string { return cmp.Or(actions.ShortenHash(hash), "unknown") }
	now := unknown(x.Status.CurrentHash)
	if x.Status.CurrentHash == "" && x.Status.Integrity == v1alpha1.IntegrityDrifted {
		now = "absent"
	}
	return fmt.Sprintf("%s: %s → %s at the write, %s then", state, unknown(x.Spec.PreHash), unknown(x.Spec.PostHash), now)
}

// DescribeComponent gives score, weight and words of a component of an assessment.
func DescribeComponent(x *v1alpha1.EffectivenessAssessment, name effect.Name) string {
	components := effect.ReadComponents(&x.Status)
	words := describeComponent(name, components.Of(name))
	if words == "" && x.Status.Verdict == "" {
		return "not assessed yet"
	}
	return cmp.Or(words, "not assessed")
}

func describeComponent(name effect.Name, c *effect.Component) string {
	switch c.State {
	case effect.Assessed:
		score := "no score"
		if c.Score != nil {
			score = actions.FormatScore(*c.Score)
		}
		against := ""
		if c.Bad {
			against = "against the write: "
		}
		return strings.TrimRight(fmt.Sprintf("%8s × %s   %s%s", score, FormatWeight(effect.Weight(name)), against, c.Why), " :")
	case effect.NotConfigured:
		return "not configured"
	case effect.NotAnswered:
		return strings.TrimSuffix("not assessed: "+c.Why, ": ")
	case effect.NotAssessed:
	}
	return ""
}

// FormatWeight gives the weight of a component of an assessment, with two decimals.
func FormatWeight(weight int64) string {
	return fmt.Sprintf("%d.%02d", weight/effect.Best, weight%effect.Best/100)
}

// Conclude tells the result of an assessment in one sentence.
func Conclude(x *v1alpha1.EffectivenessAssessment) string {
	why := ""
	if x.Status.Message != "" {
		why = ": " + x.Status.Message
	}
	switch x.Status.Verdict {
	case v1alpha1.VerdictEffective:
		return "It helped and is still in effect."
	case v1alpha1.VerdictIneffective:
		return "It is in effect and did not help" + why
	case v1alpha1.VerdictInconclusive:
		return "Too little is known" + why
	case v1alpha1.VerdictInvalidated:
		return "It is not in effect any more" + why
	}
	if x.Status.Phase == v1alpha1.AssessmentFailed {
		return "It cannot be assessed" + why
	}
	return "It is being measured; \"" + CommandName + " assess explain " + x.Name + "\" gives the reason of its wait."
}
