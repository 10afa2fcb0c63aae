// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Names of what puts drift back.
const (
	// ExecutorName is that of the executor's Deployment, service account and lease.
	ExecutorName = "plumbline-executor"
	// EvidenceName is that of the ConfigMap with the public keys of evidence.
	EvidenceName = "plumbline-evidence"
	// ClusterLedger is the ledger that bounds all Environments together.
	ClusterLedger = "plumbline-cluster"

	executorComponent = "executor"
	serveEvidenceFlag = "--serve-evidence=true"
	executorTargets   = "plumbline-executor-targets"
	executorUserFlag  = "--executor-user="
)

// Environment is a set of namespaces that belong together.
type Environment struct {
	Name string
	// Namespaces that belong to it and to no more critical one, sorted.
	Namespaces []string
	// Ledger is the uid of the ledger that it remembers.
	Ledger string
}

// Remediation is what was read of what puts drift back.
type Remediation struct {
	Policies     Read[[]v1alpha1.RemediationPolicy]
	Environments Read[[]Environment]
	// Ledgers of the installation, without their entries.
	Ledgers Read[[]v1alpha1.RemediationLedger]
	Plans   Read[Plans]
	// Lease is the executor's.
	Lease Read[Lease]
	// PublicKeys are those of the evidence, as PEM.
	PublicKeys Read[string]
	// Unanswered are the components that assessments got no answer about.
	Unanswered Read[[]Unanswered]
}

// executor says whether the installation is to run an executor: it has its
// Deployment, or, where that was deleted, the assessor was told of one.
func (s *Snapshot) executor() ReadState {
	if s.Namespace == "" || !s.Workloads.known() {
		return ReadUnknown
	}
	state := ReadUnknown
	for _, w := range s.Workloads.Value {
		switch {
		case w.Name == ExecutorName || w.Name == AssessorName && w.arg(executorUserFlag) != "":
			return ReadValue
		case w.Name == AssessorName:
			state = ReadAbsent
		}
	}
	return state
}

// arg is the value of an argument, the last one given; empty without it.
func (w *Workload) arg(flag string) string {
	value := ""
	for _, arg := range w.Args {
		if v, ok := strings.CutPrefix(arg, flag); ok {
			value = v
		}
	}
	return value
}

// executorWorkload runs the executor: its own Deployment, or the assessor's where
// both are one process.
func (s *Snapshot) executorWorkload() *Workload {
	for i := range s.Workloads.Value {
		w := &s.Workloads.Value[i]
		if w.Name == ExecutorName || w.Name == AssessorName && slices.Contains(strings.Split(w.arg("--role="), ","), "execute") {
			return w
		}
	}
	return nil
}

// executorComponent is the label of the pods that carry plans out.
func (s *Snapshot) executorComponent() string {
	if w := s.executorWorkload(); w != nil {
		return w.Component
	}
	return executorComponent
}

// ServesRecords tells of which pods records are to be read: those with this label
// of their component.
func (s *Snapshot) ServesRecords() (component string, served bool) {
	w := s.executorWorkload()
	return s.executorComponent(), w != nil && slices.Contains(w.Args, serveEvidenceFlag)
}

// executorUnknown says why it cannot be told whether there is to be an executor.
func (s *Snapshot) executorUnknown(what string) Finding {
	switch {
	case s.Namespace == "":
		return Finding{Severity: Unknown, Message: "cannot tell " + what + ": no installation was found"}
	case !s.Workloads.known():
		return s.Workloads.unknown(what)
	default:
		return Finding{Severity: Unknown, Message: "cannot tell " + what + ": neither the executor's Deployment is there nor the assessor's, which says whether it should be"}
	}
}

// withExecutor asks where an executor is to run, and says so where none is.
func withExecutor(what string, run func(*Snapshot) []Finding) func(*Snapshot) []Finding {
	return func(s *Snapshot) []Finding {
		switch s.executor() {
		case ReadValue:
			return run(s)
		case ReadAbsent:
			return []Finding{{Severity: OK, Message: "the executor is not enabled: Plumbline remediates no drift"}}
		case ReadUnknown:
		}
		return []Finding{s.executorUnknown(what)}
	}
}

// writing are the policies that have something written when there is drift.
func (s *Snapshot) writing() []*v1alpha1.RemediationPolicy {
	var out []*v1alpha1.RemediationPolicy
	for i := range s.Remediation.Policies.Value {
		p := &s.Remediation.Policies.Value[i]
		if p.Spec.Mode == v1alpha1.PolicyModeActive && p.Spec.Action != v1alpha1.ActionNotifyOnly {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.RemediationPolicy) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (s *Snapshot) environment(name string) *Environment {
	for i := range s.Remediation.Environments.Value {
		if e := &s.Remediation.Environments.Value[i]; e.Name == name {
			return e
		}
	}
	return nil
}

// guardedNamespaces are those that some guard covers: elsewhere nothing drifts.
func (s *Snapshot) guardedNamespaces() map[string]bool {
	out := map[string]bool{}
	for i := range s.Guards.Value {
		for _, namespace := range s.namespacesOf(&s.Guards.Value[i]) {
			out[namespace] = true
		}
	}
	return out
}

// boundNamespaces are those in which the executor may write, by a RoleBinding to
// the role that is made for it. Those that admission excludes never count.
func (s *Snapshot) boundNamespaces() []string {
	var out []string
	for _, b := range s.Roles.Value.Bindings {
		if b.Role.Kind == "ClusterRole" && b.Role.Name == executorTargets && s.ofExecutor(b) &&
			!slices.Contains(specguard.ExcludedNamespaces(s.Namespace), b.Namespace) && !slices.Contains(out, b.Namespace) {
			out = append(out, b.Namespace)
		}
	}
	slices.Sort(out)
	return out
}

// Plans sums up all RemediationPlans, so that no snapshot holds them.
type Plans struct {
	// Unfinished counts those that have not ended.
	Unfinished int
	// Waiting are those among them that wait for something.
	Waiting []WaitingPlan
}

// WaitingPlan is a plan that goes on when something has happened.
type WaitingPlan struct {
	Namespace, Name, Policy string
	// Since is when it was made, or was to begin.
	Since time.Time
	// Why it waits, in the executor's words; empty while none has taken it.
	Why string
	// Until is when it is looked at again, where that is known.
	Until time.Time
	// Person: somebody has to do something, and time alone changes nothing.
	Person bool
}

// Add takes a plan in.
func (p *Plans) Add(plan *v1alpha1.RemediationPlan) {
	switch plan.Status.Phase {
	case v1alpha1.PlanSucceeded, v1alpha1.PlanPartialSuccess, v1alpha1.PlanFailed, v1alpha1.PlanCanceled,
		v1alpha1.PlanSuperseded, v1alpha1.PlanSkipped:
		return
	case "", v1alpha1.PlanCreated, v1alpha1.PlanScheduled, v1alpha1.PlanDeferred, v1alpha1.PlanRunning, v1alpha1.PlanPaused, v1alpha1.PlanSealing:
	}
	p.Unfinished++
	if plan.Status.Phase == v1alpha1.PlanRunning && plan.Status.DeferralReason == "" {
		return
	}
	p.Waiting = append(p.Waiting, waiting(plan))
}

func waiting(plan *v1alpha1.RemediationPlan) WaitingPlan {
	spec, status := &plan.Spec.Plan, &plan.Status
	w := WaitingPlan{
		Namespace: plan.Namespace, Name: plan.Name, Policy: spec.Policy.Name, Since: plan.CreationTimestamp.Time, Why: status.DeferralReason,
		Person: status.Phase == v1alpha1.PlanPaused || spec.Trigger == v1alpha1.TriggerManual && spec.Request == nil && status.StartTime == nil,
	}
	if at := spec.ScheduledTime; at != nil { // never before it was made
		w.Since = at.Time
	}
	if status.ResumeTime != nil {
		w.Until = status.ResumeTime.Time
	}
	switch {
	case status.Phase == v1alpha1.PlanPaused:
		w.Why = "paused by " + plan.Spec.Control.RequestedBy
	case w.Why == "" && status.Phase != "":
		w.Why = "it is " + string(status.Phase)
	}
	return w
}
