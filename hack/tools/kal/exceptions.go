// SPDX-License-Identifier: Apache-2.0

package main

// settings are those of the golangci-lint plugin: every rule that a kind
// served from a CRD can meet is on.
var settings = map[string]any{
	"linters": map[string]any{
		"enable": []string{
			"maxlength", "minlength", "nobools", "statusoptional", "statussubresource",
		},
		// nonpointerstructs is for in-tree kinds, which are validated in Go.
		"disable": []string{"nonpointerstructs"},
	},
	"lintersConfig": map[string]any{
		// Kinds served from CRDs have no protobuf form and no strategic merge patch.
		"conditions": map[string]any{"isFirstField": "Warn", "useProtobuf": "Forbid", "usePatchStrategy": "Forbid"},
		// A pointer only where absent and zero mean different things; "required"
		// numbers and the counts that columns show are written even when zero.
		"optionalFields": map[string]any{
			"pointers":  map[string]any{"preference": "WhenRequired"},
			"omitempty": map[string]any{"policy": "Ignore"},
		},
		"requiredFields": map[string]any{"omitempty": map[string]any{"policy": "Ignore"}},
	},
}

// exception silences the findings of one linter whose message contains a text.
type exception struct {
	linter, message string
	// reason, for the next reader.
	reason string
}

var exceptions = []exception{
	{"minlength", "must have a minimum items", "an empty list means what an absent one does; charts and generators write both"},
	{"minlength", "must have either a required field or a minimum properties", "an empty struct means what an absent one does; where it may not, a CEL rule says so with a message"},
	{"minlength", "array element type LabelValue must have a minimum length", "the value of a label may be empty"},
	{"minlength", "field SelectingGuard.Labels must have a minimum properties", "a selector may ask for the absence of a label, so no label is another thing than no knowledge"},
	{"nomaps", "field TrafficSplit.Percentages should not use a map", "a percentage for each name is how people write a split, and rules can sum it"},
	{"minlength", "field CloneVariable.Value must have a minimum length", "the value of an environment variable may be empty"},
	{"minlength", "field Finding.Path must have a minimum length", "the empty path is the object as a whole"},
	{"arrayofstruct", "GuardDefaultsSpec.Kinds", "its required fields, apiVersion and kind, stand in an inlined struct, which the linter does not follow"},
	{"nodurations", "ResyncPeriod", "people write 3h here, on the object's annotation and on the command line alike; a CEL rule bounds the form and the value"},
	{"nodurations", "GroupInterval", "as ResyncPeriod"},
	{"nodurations", "RecheckInterval", "as ResyncPeriod"},
	{"nodurations", "TrafficRouterSpec.Settle", "as ResyncPeriod"},
	{"nodurations", "DelayAfter", "as ResyncPeriod"},
	{"nodurations", "Stabilization", "as ResyncPeriod"},
	{"nodurations", "RemediationHealth.Timeout", "as ResyncPeriod"},
	{"nodurations", "RolloutDeadlines", "as ResyncPeriod"},
	{"nodurations", "RolloutStage.Duration", "as ResyncPeriod"},
	{"nodurations", "RolloutAnalysisSpec.CohortCheck", "as ResyncPeriod"},
	{"nodurations", "RolloutAnalysisSpec.Warmup", "as ResyncPeriod"},
	{"nodurations", "HealthCheckInterval", "as ResyncPeriod"},
	{"nodurations", "OpenDuration", "as ResyncPeriod"},
	{"nodurations", "Cooldown", "as ResyncPeriod"},
	{"nodurations", "MinimumDriftAge", "as ResyncPeriod"},
	{"nodurations", "MaximumDriftAge", "as ResyncPeriod"},
	{"nodurations", "Acknowledgment.Deadline", "as ResyncPeriod"},
	{"nodurations", "Validity", "as ResyncPeriod"},
	{"nodurations", "AlertCheckDelay", "as ResyncPeriod"},
	{"nodurations", "PropagationDelay", "as ResyncPeriod"},
	{"noreferences", "field ObservedMetadata.OwnerReferences", "it is metadata.ownerReferences of the object, under its own name"},
	{"nophase", "RemediationPlanStatus.Phase", "a plan is a state machine with an end, and its phase is what people ask for first; conditions stand beside it"},
	{"nophase", "EffectivenessAssessmentStatus.Phase", "as RemediationPlanStatus.Phase: an assessment has an end"},
	{"nophase", "ReleaseWorkStatus.Phase", "as RemediationPlanStatus.Phase: a work has an end"},
	{"nophase", "RolloutWork.Phase", "it repeats ReleaseWorkStatus.Phase"},
	{"nophase", "StepStandby.Phase", "as RemediationPlanStatus.Phase: a standby has an end"},
	{"requiredfields", "has a valid zero value ({})", "times: the linter does not know that their schema is a date-time string, which {} is not"},
	{"optionalfields", "It must have the omitzero tag", "pointers: nil is absent"},
	{"optionalfields", "The field does not need to be a pointer", "pointers: the rules ask whether there is an authorized state, a request, a severity; nil is the plain way to say no"},
	{"optionalfields", "Generation has a valid zero value (0)", "generations count from 1; 0 is none"},
	{"optionalfields", "FindingsTotal has a valid zero value (0)", "no findings and no count are the same"},
	{"optionalfields", "Status has a valid zero value", "a status that nobody has written yet is left out by omitzero"},
}
