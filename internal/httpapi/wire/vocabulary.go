// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"reflect"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// vocabularies has the words of each enum. A test compares the values with the markers of the kinds.
var vocabularies = map[reflect.Type]vocabulary{
	// Remediation. The designs have other words for Staged, Image and Scale.
	reflect.TypeFor[v1alpha1.RemediationTrigger]():      terms("Immediate", "Scheduled", "AgeThreshold", "SeverityEscalation", "Manual"),
	reflect.TypeFor[v1alpha1.RemediationAction]():       terms("NotifyOnly", "Reconcile", "Rollback", "Scale", "Restart", "Quarantine"),
	reflect.TypeFor[v1alpha1.RemediationStrategy]():     terms("AllAtOnce", "Rolling", "Staged", "BlueGreen").saying("Staged", "canary"),
	reflect.TypeFor[v1alpha1.SeverityLevel]():           terms("Info", "Low", "Medium", "High", "Critical"),
	reflect.TypeFor[v1alpha1.DriftType]():               terms("Missing", "Image", "Scale", "Unexpected", "Other").saying("Image", "digest_mismatch").saying("Scale", "status_mismatch"),
	reflect.TypeFor[v1alpha1.PolicyMode]():              terms("ObserveOnly", "Active", "Halted"),
	reflect.TypeFor[v1alpha1.Permission]():              terms("Allowed", "Forbidden"),
	reflect.TypeFor[v1alpha1.Weekday]():                 terms("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
	reflect.TypeFor[v1alpha1.ChannelType]():             terms("Slack", "Email", "Webhook", "CloudEvents"),
	reflect.TypeFor[v1alpha1.PlanCreatedNotification](): terms("Enabled", "IfWaiting", "Disabled"),
	reflect.TypeFor[v1alpha1.InitialAction]():           terms("NotifyOnly"),
	reflect.TypeFor[v1alpha1.PlanPhase](): terms("Created", "Scheduled", "Deferred", "Running", "Paused", "Sealing",
		"Succeeded", "PartialSuccess", "Failed", "Canceled", "Superseded", "Skipped"),
	reflect.TypeFor[v1alpha1.StepState](): terms("Planned", "Reserved", "Intent", "Applied", "Verified", "Skipped", "Failed", "Fenced"),
	reflect.TypeFor[v1alpha1.StepReason](): terms("TargetMoved", "TargetReplaced", "Contended", "AlreadyDesired", "WouldNotConverge",
		"Terminating", "NotAllowed", "RevisionDamaged", "Claimed", "Unhealthy", "Refused", "DeadlineExceeded", "Stopped", "PolicyChanged",
		"AboveMaximumAge", "BlastRadius", "BelowSeverity", "NoStandby"),
	reflect.TypeFor[PlanStatus](): terms("Created", "Scheduled", "Deferred", "Running", "Paused", "Succeeded", "PartialSuccess", "Failed", "Ended").
		saying("Ended", "cancelled"),
	reflect.TypeFor[TargetStatus](): terms("Pending", "Running", "Succeeded", "Failed", "Skipped"),
	reflect.TypeFor[Source]():       terms("Plan", "Evidence"),

	reflect.TypeFor[v1alpha1.RequestOutcome](): terms("Planned", "Refused"),
	reflect.TypeFor[DryRunOutcome]():           terms("Converges", "WouldNotConverge", "Refused", "Forbidden", "TargetMoved", "Unknown"),

	// Questions about an effect, and their answers.
	reflect.TypeFor[v1alpha1.MatchOperator]():   terms("Equals", "NotEquals", "Matches", "NotMatches"),
	reflect.TypeFor[v1alpha1.EffectObjective](): terms("LowerIsBetter", "HigherIsBetter"),
	reflect.TypeFor[v1alpha1.AssessedAction]():  terms("NotifyOnly", "Reconcile", "Rollback", "Scale", "Restart", "Quarantine", "Promote"),
	reflect.TypeFor[v1alpha1.EffectHashes]():    terms("ddem002"),
	reflect.TypeFor[v1alpha1.EffectVerdict]():   terms("Effective", "Ineffective", "Inconclusive", "Invalidated"),
	reflect.TypeFor[v1alpha1.AssessmentPhase](): terms("Pending", "WaitingForPropagation", "Stabilizing", "Assessing", "Completed", "Failed"),
	reflect.TypeFor[v1alpha1.AssessmentReason](): terms("Full", "Partial", "Expired", "NoExecution", "MetricsTimedOut", "SpecDrift",
		"AlertDecayTimeout"),
	reflect.TypeFor[v1alpha1.SpecIntegrity]():   terms("Unknown", "SpecUnchanged", "SpecDrifted"),
	reflect.TypeFor[v1alpha1.EffectComponent](): terms("Health", "Alerts", "Metrics"),
	reflect.TypeFor[v1alpha1.ComponentState]():  terms("Assessed", "NotConfigured", "NotAnswered"),
	reflect.TypeFor[v1alpha1.ComponentEffect](): terms("For", "Against"),
	reflect.TypeFor[v1alpha1.AlertDecay]():      terms("Active", "Resolved", "TimedOut"),
	reflect.TypeFor[v1alpha1.Execution]():       terms("Executed", "NoExecution"),

	// Guards, Baselines and Environments.
	reflect.TypeFor[v1alpha1.GuardMode]():            terms("Audit", "Warn", "Deny"),
	reflect.TypeFor[v1alpha1.ResourceCategory]():     terms("Workloads", "Networking", "RBAC", "Configuration", "Availability", "Storage"),
	reflect.TypeFor[v1alpha1.GuardExceptions]():      terms("Forbidden", "Allowed"),
	reflect.TypeFor[v1alpha1.ManagementPolicy]():     terms("Managed", "Unmanaged"),
	reflect.TypeFor[v1alpha1.ObjectOverride]():       terms("Forbidden", "Lengthen", "Stop"),
	reflect.TypeFor[v1alpha1.AuthenticatedDeletes](): terms("Required", "NotRequired"),
	reflect.TypeFor[v1alpha1.Origin]():               terms("Created", "Imported"),
	reflect.TypeFor[v1alpha1.DriftState]():           terms("InSync", "Drifted", "Missing", "Unknown", "Retired", "NotGuarded"),
	reflect.TypeFor[v1alpha1.Operation]():            terms("Added", "Removed", "Changed"),
	reflect.TypeFor[v1alpha1.FindingClass](): terms("ObjectMissing", "ObjectUnexpected", "ContainerMissing", "ImageRepository",
		"ImageVersion", "Execution", "Security", "Networking", "Storage", "Scale", "Resources", "TemplateMetadata", "Other"),
	reflect.TypeFor[v1alpha1.ActorClass]():  terms("Trusted", "Expected", "System", "Untrusted", "Unknown"),
	reflect.TypeFor[v1alpha1.ActorSource](): terms("WriterStamp", "Admission", "ManagedFields", "None"),
	reflect.TypeFor[v1alpha1.Criticality](): terms("Production", "Staging", "Development", "Other"),

	// Releases.
	reflect.TypeFor[v1alpha1.TrafficSplitType]():         terms("Percentage", "Sticky", "Header"),
	reflect.TypeFor[v1alpha1.VisitorPolicy]():            terms("Assign", "Ignore"),
	reflect.TypeFor[v1alpha1.CookieSecurity]():           terms("Always", "Never"),
	reflect.TypeFor[v1alpha1.TimeoutPolicy]():            terms("Hold", "Proceed"),
	reflect.TypeFor[v1alpha1.AcknowledgmentNamespaces](): terms("All", "Same"),
	reflect.TypeFor[v1alpha1.AcknowledgmentState]():      terms("Proven", "Accepted", "Unknown", "NoProxies", "Contradicted"),
	reflect.TypeFor[v1alpha1.RolloutModel]():             terms("Router", "TargetGroup", "Hybrid"),
	reflect.TypeFor[v1alpha1.RolloutStart]():             terms("Automatic", "Manual"),
	reflect.TypeFor[v1alpha1.UndecidedPolicy]():          terms("Hold", "Promote", "Rollback"),
	reflect.TypeFor[v1alpha1.PromotionPolicy]():          terms("KeepVariation", "UpdateBaseline", "AwaitBaseline"),
	reflect.TypeFor[v1alpha1.FallbackPolicy]():           terms("Wait", "HoldMinReplicas"),
	reflect.TypeFor[v1alpha1.ApprovalPolicy]():           terms("Anyone", "NotAuthor"),
	reflect.TypeFor[v1alpha1.ControlType]():              terms("Stable", "Fresh"),
	reflect.TypeFor[v1alpha1.SupersedePolicy]():          terms("Restart", "Queue", "Reject"),
	reflect.TypeFor[v1alpha1.GateEvent]():                terms("BeforeStart", "BeforeStage", "DuringStage", "BeforePromotion", "AfterRollback"),
	reflect.TypeFor[v1alpha1.RunState]():                 terms("Created", "Deploying", "Running", "Promoting", "Completed", "RolledBack"),
	reflect.TypeFor[v1alpha1.RolloutStageState]():        terms("Pending", "Running", "Succeeded", "Failed", "Skipped"),
	reflect.TypeFor[v1alpha1.HealthVerdict]():            terms("Fail", "BothBad", "Pass", "Undecided", "NoData"),
	reflect.TypeFor[HealthStatus]():                      terms("Healthy", "Unhealthy", "Unknown"),
	reflect.TypeFor[ProxyStage]():                        terms("NotConnected", "Blocked", "Refused", "Held", "Unknown", "Going", "OnTheWay", "Queued", "Waiting", "Acknowledged"),
}
