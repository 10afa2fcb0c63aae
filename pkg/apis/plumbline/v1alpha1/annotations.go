// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Annotations that Plumbline writes or reads on guarded objects.
const (
	// AnnotationSpecHash carries the canonical hash of the object as admission saw it. It
	// informs, and no decision depends on it: a write through /scale leaves it older than the
	// object.
	AnnotationSpecHash = "plumbline.dev/spec-hash"
	// AnnotationWriter carries the authenticated user name of the last writer
	// of the object's guarded content. A MutatingAdmissionPolicy sets it inside
	// the API server and overwrites forgeries.
	AnnotationWriter = "plumbline.dev/writer"
	// AnnotationWriterGroups carries, comma separated and sorted, those of the
	// last writer's groups that the installation lists for stamping.
	AnnotationWriterGroups = "plumbline.dev/writer-groups"
	// AnnotationApplied carries the last apply, unless another write changed the content later.
	// It has the resourceVersion before the apply, and "last-applied", "manager=" with the
	// field manager, or both. The policy that stamps writers sets it.
	AnnotationApplied = "plumbline.dev/applied"
	// AnnotationApplier carries the authenticated name of the user that applied.
	AnnotationApplier = "plumbline.dev/applier"
	// AnnotationApplierGroups carries those of the user's groups that the installation
	// lists for stamping, as AnnotationWriterGroups does.
	AnnotationApplierGroups = "plumbline.dev/applier-groups"
	// AnnotationResyncPeriod lets an object lengthen or stop its own checks as
	// far as the guard's objectOverride allows.
	AnnotationResyncPeriod = "plumbline.dev/resync-period"
	// AnnotationCheckRequested on a Baseline asks for a check now; its value is any
	// text that was not there before, such as the time.
	AnnotationCheckRequested = "plumbline.dev/check-requested"
	// AnnotationChainsForgiven on a RemediationPolicy is a time as RFC 3339. A person has
	// looked at the repairs without help until then: they hold back no further repair.
	AnnotationChainsForgiven = "plumbline.dev/chains-forgiven"
	// AnnotationModeReason on a RemediationPolicy carries the reason of a person for the last change of its mode.
	AnnotationModeReason = "plumbline.dev/mode-reason"
	// AnnotationNotificationNamespaces is on a Secret of Plumbline's namespace, and lists the
	// namespaces with SpecGuards that may name the Secret in their channels: names separated by
	// commas, or "*" for all. Channels of cluster-scoped kinds need no such entry.
	AnnotationNotificationNamespaces = "plumbline.dev/notification-namespaces"
	// AnnotationRequestDigest carries the digest of the body of the REST request that created the object.
	AnnotationRequestDigest = "plumbline.dev/request-digest"
	// AnnotationBreakGlassReason carries the reason of a user for passing a Deny guard. It
	// counts for the write that changes it, and only with the verb breakglass.
	AnnotationBreakGlassReason = "plumbline.dev/break-glass-reason"
)

// FinalizerReturnRequests holds an ABRelease until its requests have returned to the pods that
// the Service selects.
const FinalizerReturnRequests = "plumbline.dev/return-requests"

// Labels that Plumbline writes on its own objects, so that they can be selected.
const (
	// LabelBaseline names the Baseline a BaselineRevision belongs to.
	LabelBaseline = "plumbline.dev/baseline"
	// LabelRequestKey is a digest of the user, and of the Idempotency-Key of the REST request that
	// created the object.
	LabelRequestKey = "plumbline.dev/request-key"
	// LabelTargetKind is the kind of the guarded object, e.g. Deployment.
	LabelTargetKind = "plumbline.dev/target-kind"
)

// Labels that the executor writes on the workloads of releases.
const (
	// LabelReleaseWork carries the uid of the ReleaseWork of the last write, so that the audit
	// log of the API server and the work can be joined.
	LabelReleaseWork = "plumbline.dev/release-work"
	// LabelReleaseWorkFence carries the uid of the ReleaseWork that was refused after its intent.
	// The write of the label moves the resourceVersion that the intent is bound to.
	LabelReleaseWorkFence = "plumbline.dev/release-work-fence"
	// AnnotationCloneChange has, on a clone, the clone of the variation that the executor made it from, as
	// JSON without minReplicas. A run that is not superseded goes on with it.
	AnnotationCloneChange = "plumbline.dev/clone-change"
	// LabelClone carries the uid of the release on a clone and on its pods, with the suffix
	// ".fresh-control" on a fresh control. It is the selector of the clone.
	LabelClone = "plumbline.dev/clone"
)

// Condition types. Ready, Reconciling and Stalled follow kstatus.
const (
	// ConditionReady is True when the object is active (guards) or in sync (Baselines).
	ConditionReady = "Ready"
	// ConditionReconciling is True while observation lags behind the spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when only a change of the spec can help.
	ConditionStalled = "Stalled"
	// ConditionDegraded is True while an object works less well than its spec has it. The
	// reason is the most severe one, and the message tells all.
	ConditionDegraded = "Degraded"
	// ConditionAcceptanceAllowed is False when a guard does not let the user of the last
	// request accept. The message names the users that may.
	ConditionAcceptanceAllowed = "AcceptanceAllowed"
	// ConditionAnnounced is False on a plan until its end is in the log, the metrics and an
	// Event, and the channels of the policy have it. It is True after that.
	ConditionAnnounced = "Announced"
	// ConditionSuspended is True while a guard is suspended. A Deny guard with a suspension
	// refuses again once it is False.
	ConditionSuspended = "Suspended"
	// ConditionEnforced of a ClusterSpecGuard of mode Deny is True when the API server that was
	// asked rejects untrusted writes. It is False on ClusterSpecGuards of other modes.
	ConditionEnforced = "Enforced"
	// ConditionEnforcementProbe marks the dry run that asks. It is never stored.
	ConditionEnforcementProbe = "EnforcementProbe"
)

// Reasons of Degraded. Those of ABReleases are beside their status.
const (
	// ReasonContended: two writers keep undoing each other (Baselines).
	ReasonContended = "Contended"
	// ReasonMassDrift: so many objects drift at once that one cause must be assumed, and
	// automatic repair leaves them alone (guards, with status.massDrift, and policies).
	ReasonMassDrift = "MassDrift"
	// ReasonBreakerOpen: the circuit breaker lets no step through (policies).
	ReasonBreakerOpen = "BreakerOpen"
	// ReasonBreakerHalfOpen: the circuit breaker lets one step through, as a trial (policies).
	ReasonBreakerHalfOpen = "BreakerHalfOpen"
	// ReasonNamespacesOverlap: another Environment selects the same namespaces.
	ReasonNamespacesOverlap = "NamespacesOverlap"
)
