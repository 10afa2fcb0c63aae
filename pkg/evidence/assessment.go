// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"regexp"
	"time"
)

// Assessment is what a KindAssessment tells of an EffectivenessAssessment that has ended: whether the
// write of a step helped, and whether it is still in effect.
type Assessment struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Reason of the end, as in spec_drift; empty of an assessment that could not be carried out.
	Reason  string `json:"reason,omitempty"`
	Verdict string `json:"verdict"`
	// Score in basis points, by the version Formula of the formula; nil if no component has one.
	Score   *int32 `json:"score,omitempty"`
	Formula int32  `json:"formula,omitempty"`
	// Integrity says whether the target was as the write left it.
	Integrity  string              `json:"integrity,omitempty"`
	Components []AssessedComponent `json:"components,omitempty"`
	// PreHash and PostHash are those before and after the write, and CurrentHash is the one that was
	// read last. A hash that is not known is empty.
	PreHash     string `json:"preHash,omitempty"`
	PostHash    string `json:"postHash,omitempty"`
	CurrentHash string `json:"currentHash,omitempty"`
	// WrittenAt is when the target was written, by the API server; zero if it was not.
	WrittenAt time.Time `json:"writtenAt,omitzero"`
}

// AssessedComponent is one of the measurements that the score is made of.
type AssessedComponent struct {
	Name  string `json:"name"`
	State string `json:"state"`
	// Effect is For or Against the write; empty if the component was not assessed.
	Effect string `json:"effect,omitempty"`
	Score  *int32 `json:"score,omitempty"`
}

const (
	// maxComponents is what a score is made of, with room for two more.
	maxComponents = 5
	// maxScore is the best score, in basis points.
	maxScore = 10_000
)

var reasonPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

func (a *Assessment) validate() error {
	switch {
	case a == nil:
		return nil
	case len(a.Components) > maxComponents:
		return invalid("assessment.components", "%d, at most %d", len(a.Components), maxComponents)
	case a.Reason != "" && !reasonPattern.MatchString(a.Reason):
		return invalid("assessment.reason", "%.80q is not of the form %s", a.Reason, reasonPattern)
	}
	for i := range a.Components {
		if err := a.Components[i].validate(); err != nil {
			return err
		}
	}
	return cmp.Or(
		text("assessment.name", a.Name, 1, maxName),
		required(uidPattern, "assessment.uid", a.UID, maxUID),
		required(wordPattern, "assessment.verdict", a.Verdict, maxName),
		optional(wordPattern, "assessment.integrity", a.Integrity),
		score("assessment.score", a.Score),
		notNegative("assessment.formula", int64(a.Formula)),
		optional(hashPattern, "assessment.preHash", notAbsent(a.PreHash)),
		optional(hashPattern, "assessment.postHash", notAbsent(a.PostHash)),
		optional(hashPattern, "assessment.currentHash", notAbsent(a.CurrentHash)),
	)
}

func (c *AssessedComponent) validate() error {
	return cmp.Or(
		required(wordPattern, "assessment.components.name", c.Name, maxName),
		required(wordPattern, "assessment.components.state", c.State, maxName),
		optional(wordPattern, "assessment.components.effect", c.Effect),
		score("assessment.components.score", c.Score),
	)
}

func score(field string, value *int32) error {
	if value != nil && (*value < 0 || *value > maxScore) {
		return invalid(field, "%d is not from 0 to %d", *value, maxScore)
	}
	return nil
}

// notAbsent returns a hash as it is, and nothing for that of an object that does not exist.
func notAbsent(hash string) string {
	if hash == hashAbsent {
		return ""
	}
	return hash
}

// normalized has the time as it is after a round trip.
func (a *Assessment) normalized() *Assessment {
	if a == nil {
		return nil
	}
	out := *a
	out.WrittenAt = normalTime(out.WrittenAt)
	return &out
}
