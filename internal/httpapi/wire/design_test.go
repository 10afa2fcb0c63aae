// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// designFields are the names of the published designs, by the type that has them. A dot leads into
// the type of a field.
var designFields = map[reflect.Type][]string{
	reflect.TypeFor[Policy](): {
		"id", "name", "environmentId", "trigger", "minimumSeverity", "minimumDriftAge", "maximumDriftAge", "action", "strategy",
		"maxConcurrentRemediations", "maxRemediationsPerHour", "cooldownPeriod", "maintenanceWindow.enabled", "maintenanceWindow.start",
		"maintenanceWindow.end", "maintenanceWindow.timezone", "allowedDays", "allowedStartTime", "allowedEndTime",
		"notifications.onPlanCreated", "notifications.onRemediationStarted", "notifications.onRemediationCompleted",
		"notifications.onRemediationFailed", "notifications.channels.type", "notifications.channels.channel", "notifications.channels.recipients",
	},
	reflect.TypeFor[Plan](): {
		"id", "driftReportId", "policy", "status", "batches.order", "batches.targets.targetId", "batches.targets.targetName",
		"batches.targets.drift.type", "batches.targets.drift.detectedAt", "batches.targets.drift.componentId",
		"batches.targets.severity.level", "batches.targets.severity.score", "batches.targets.severity.factors.name",
		"batches.targets.severity.factors.score", "batches.targets.severity.factors.weight", "batches.targets.severity.driftAge",
		"batches.targets.severity.requiresImmediate", "batches.targets.action", "batches.targets.actionPayload", "batches.delayAfter",
		"batches.requiresHealthCheck", "createdAt", "scheduledFor", "startedAt", "completedAt", "deferralReason",
	},
	reflect.TypeFor[Result](): {
		"planId", "status", "targetResults.targetId", "targetResults.status", "targetResults.error", "targetResults.duration",
		"targetResults.previousDigest", "targetResults.currentDigest", "targetResults.logs", "evidencePacketId", "duration",
		"metrics.totalTargets", "metrics.succeeded", "metrics.failed", "metrics.skipped", "metrics.totalDuration", "metrics.averageTargetDuration",
	},
	reflect.TypeFor[Evidence](): {
		"detectedDrift.type", "severities.level", "policy", "plan", "results.targetId", "initiatedBy", "initiatedAt", "completedAt", "generatedArtifacts",
	},
	reflect.TypeFor[Release](): {
		"id", "tenantId", "environmentId", "name", "variations.name", "variations.releaseId", "variations.targetGroupId",
		"variations.trafficPercentage", "variations.deploymentJobId", "activeVariation", "trafficSplit.type", "trafficSplit.percentages",
		"trafficSplit.stickyKey", "trafficSplit.headerMatch.header", "trafficSplit.headerMatch.values", "rolloutStrategy.stages", "status",
		"createdAt", "completedAt", "createdBy",
		"stages.id", "stages.abReleaseId", "stages.stageNumber", "stages.trafficPercentage", "stages.status", "stages.healthThreshold",
		"stages.durationSeconds", "stages.requireApproval", "stages.startedAt", "stages.completedAt", "stages.healthResult.healthy",
		"stages.healthResult.healthPercentage", "stages.healthResult.metrics.successRate", "stages.healthResult.metrics.errorRate",
		"stages.healthResult.metrics.latencyP50", "stages.healthResult.metrics.latencyP99", "stages.healthResult.samples",
		"stages.healthResult.evaluatedAt",
	},
	reflect.TypeFor[Strategy](): {
		"id", "name", "stages.trafficPercentage", "stages.durationSeconds", "stages.healthThreshold", "stages.requireApproval", "autoAdvance",
		"rollbackOnFailure", "healthCheckInterval",
	},
	reflect.TypeFor[Traffic](): {
		"currentSplit.backends.name", "currentSplit.backends.weight", "currentSplit.backends.healthyTargets",
		"currentSplit.backends.totalTargets", "currentSplit.timestamp", "history",
	},
	reflect.TypeFor[Health](): {
		"variations.name", "variations.healthStatus", "variations.metrics.successRate", "variations.metrics.errorRate",
		"variations.metrics.latencyP50", "variations.metrics.latencyP99",
	},
	reflect.TypeFor[Event]():          {"type", "planId", "targetId", "status", "progress", "message", "timestamp"},
	reflect.TypeFor[AdvanceRequest](): {"stageNumber"},
	reflect.TypeFor[PromoteRequest](): {"variation"},
}

func TestEachFieldOfTheDesignsIsThere(t *testing.T) {
	for object, paths := range designFields {
		for _, path := range paths {
			at := object
			for name := range strings.SplitSeq(path, ".") {
				if at = fieldNamed(at, name); at == nil {
					t.Errorf("%s has no field %s: %q is missing", object.Name(), path, name)
					break
				}
			}
		}
	}
}

// fieldNamed returns the type of a field by its JSON name, without pointers and slices around it.
func fieldNamed(t reflect.Type, name string) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Type
		}
	}
	return nil
}

// designWords are the enum values of the published designs, by the field that has them.
var designWords = map[string]struct {
	object reflect.Type
	words  []string
}{
	"trigger":  {reflect.TypeFor[Policy](), []string{"immediate", "scheduled", "age_threshold", "severity_escalation", "manual"}},
	"action":   {reflect.TypeFor[Policy](), []string{"notify_only", "reconcile", "rollback", "scale", "restart", "quarantine"}},
	"strategy": {reflect.TypeFor[Policy](), []string{"all_at_once", "rolling", "canary", "blue_green"}},

	"minimumSeverity": {reflect.TypeFor[Policy](), []string{"info", "low", "medium", "high", "critical"}},
	"allowedDays":     {reflect.TypeFor[Policy](), []string{"monday", "tuesday", "wednesday", "thursday", "friday"}},

	"notifications.channels.type": {reflect.TypeFor[Policy](), []string{"slack", "email"}},
	"batches.targets.drift.type":  {reflect.TypeFor[Plan](), []string{"missing", "digest_mismatch", "status_mismatch", "unexpected"}},
	"status": {reflect.TypeFor[Plan](), []string{
		"created", "scheduled", "deferred", "running", "paused", "succeeded", "partial_success", "failed", "cancelled",
	}},
	"trafficSplit.type":       {reflect.TypeFor[Release](), []string{"percentage", "sticky", "header"}},
	"stages.status":           {reflect.TypeFor[Release](), []string{"pending", "running", "succeeded", "failed", "skipped"}},
	"variations.healthStatus": {reflect.TypeFor[Health](), []string{"healthy", "unhealthy", "unknown"}},
}

var releaseStatuses = []string{"created", "deploying", "running", "promoting", "completed", "rolled_back"}

func TestEachWordOfTheDesignsIsKnown(t *testing.T) {
	for path, tc := range designWords {
		checkWords(t, tc.object, path, tc.words)
	}
	checkWords(t, reflect.TypeFor[Release](), "status", releaseStatuses)
}

func checkWords(t *testing.T, object reflect.Type, path string, words []string) {
	t.Helper()
	at := object
	for name := range strings.SplitSeq(path, ".") {
		if at = fieldNamed(at, name); at == nil {
			t.Fatalf("%s has no field %s", object.Name(), path)
		}
	}
	if at.Kind() == reflect.Slice {
		at = at.Elem()
	}
	for _, word := range words {
		if err := reflect.New(at).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(word)); err != nil {
			t.Errorf("%s.%s: %v", object.Name(), path, err)
		}
	}
	if err := reflect.New(at).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte("Running")); err == nil {
		t.Errorf("%s.%s takes a word in another case of letters", object.Name(), path)
	}
}

// designEvents are the types of events of the published designs.
var designEvents = []EventType{
	"plan.created", "plan.started", "plan.completed", "target.started", "target.completed", "target.failed",
	"ab.created", "ab.started", "ab.stage_advanced", "ab.promoted", "ab.rolled_back",
	"canary.stage_started", "canary.stage_passed", "canary.stage_failed",
}

func TestEachEventOfTheDesignsIsKnown(t *testing.T) {
	for _, event := range designEvents {
		if !event.Known() {
			t.Errorf("%s is not known", event)
		}
	}
	if event := EventType("plan.Created"); event.Known() {
		t.Errorf("%s is known", event)
	}
	seen := map[EventType]bool{}
	for _, event := range eventTypes {
		if seen[event] {
			t.Errorf("%s is there twice", event)
		}
		seen[event] = true
	}
}

func TestNoTwoValuesOfAnEnumHaveOneWord(t *testing.T) {
	for enum, v := range vocabularies {
		var words []string
		for _, term := range v {
			words = append(words, term.word)
		}
		slices.Sort(words)
		if len(slices.Compact(words)) != len(v) {
			t.Errorf("%s has a word twice: %v", enum, words)
		}
	}
}
