// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	scoring "github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

// Stage is how far the escalation of a drift has come.
type Stage string

// The stages, in their order.
const (
	// StageNotify: people are told, and nothing is written.
	StageNotify Stage = "Notify"
	// StageRemediate: the action of the policy is taken.
	StageRemediate Stage = "Remediate"
)

// StageOf returns the stage of a drift. A policy without an escalation has the last stage
// alone, and the request of a person passes the first one.
func StageOf(in *Input, d *Drift) Stage {
	escalation := in.Policy.Spec.Escalation
	if escalation == nil || in.Request != nil {
		return StageRemediate
	}
	when := &escalation.RemediateWhenAny
	older := when.MinimumDriftAge != nil && !d.FirstSeen.IsZero() && !in.Now.Before(d.FirstSeen.Add(when.MinimumDriftAge.Duration))
	worse := scoring.CompareLevels(when.MinimumSeverity, "") > 0 && scoring.CompareLevels(d.Severity.Level, when.MinimumSeverity) >= 0
	if older || worse {
		return StageRemediate
	}
	return StageNotify
}

// notifiedFirst returns the obstacle of the first stage.
func notifiedFirst(in *Input, d *Drift) Obstacle {
	if StageOf(in, d) == StageRemediate {
		return Obstacle{}
	}
	when := &in.Policy.Spec.Escalation.RemediateWhenAny
	o := obstacle(ReasonNotifyStage, "stage %s: people are notified, and it is remediated when %s", StageNotify, RemediateWhen(when))
	if when.MinimumDriftAge != nil && !d.FirstSeen.IsZero() {
		o.Until = d.FirstSeen.Add(when.MinimumDriftAge.Duration)
	}
	return o
}

// RemediateWhen says for people what a drift must reach until it is put back.
func RemediateWhen(when *v1alpha1.RemediationConditions) string {
	var parts []string
	if when.MinimumDriftAge != nil {
		parts = append(parts, "it is "+when.MinimumDriftAge.Duration.String()+" old")
	}
	if when.MinimumSeverity != "" {
		parts = append(parts, "its severity is at least "+string(when.MinimumSeverity))
	}
	return strings.Join(parts, ", or ")
}
