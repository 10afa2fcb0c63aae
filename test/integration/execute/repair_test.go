// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"os"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

func TestADriftIsPutBack(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.rollouts()
	w.UnderGuard()
	w.drifted("web", "api")
	policy := w.policy()
	records := newEvidence(t)
	startExecutor(t, records)
	plan := w.ended(w.plan(policy, "web", "api"))
	if plan.Status.Phase != v1alpha1.PlanSucceeded {
		t.Fatalf("the plan is %s", describe(plan))
	}
	for _, name := range []string{"web", "api"} {
		if image := w.Live(name).Spec.Template.Spec.Containers[0].Image; image != guarded.Image {
			t.Errorf("%s runs %s", name, image)
		}
		b := w.UntilIs(name, "InSync")
		if b.Status.Claim != "" {
			t.Errorf("%s is still claimed by %s", name, b.Status.Claim)
		}
	}
	w.settled(2)
	w.proven(records, plan)
}

// settled checks that the ledgers know of so many steps that have ended, and of
// none that has not.
func (w *world) settled(want int) {
	w.t.Helper()
	l := &v1alpha1.RemediationLedger{}
	w.Must(admin.Get(w.t.Context(), client.ObjectKey{Namespace: "plumbline-system", Name: w.environment}, l))
	ended := 0
	for i := range l.Status.Entries {
		if l.Status.Entries[i].SettledAt != nil {
			ended++
		}
	}
	if ended != want || ended != len(l.Status.Entries) {
		w.t.Errorf("the ledger has %d entries, of which %d have ended; want %d", len(l.Status.Entries), ended, want)
	}
}

// proven checks that the records of a plan are whole, and are the writes that the
// API server's audit log has of the executor.
func (w *world) proven(records evidenceStore, plans ...*v1alpha1.RemediationPlan) {
	w.t.Helper()
	var all []evidence.Record
	l := &v1alpha1.RemediationLedger{}
	w.Must(admin.Get(w.t.Context(), client.ObjectKey{Namespace: "plumbline-system", Name: w.environment}, l))
	options := evidence.Options{Heads: map[string]evidence.Head{}, Each: func(s evidence.Sealed) { all = append(all, s.Record) }}
	for _, c := range l.Status.Chains {
		options.Heads[c.PolicyUID] = evidence.Head{Sequence: c.Sequence, Digest: c.Digest}
		options.Chains = append(options.Chains, c.PolicyUID) // an executor carries on what others left
	}
	for _, p := range plans {
		status := evidence.PlanStatus{UID: string(p.UID), Chain: p.Spec.Plan.Policy.UID}
		for i := range p.Status.Steps {
			status.Digests = append(status.Digests, p.Status.Steps[i].Evidence.Digest)
		}
		options.Plans = append(options.Plans, status)
	}
	report, err := evidence.Verify(w.t.Context(), records.writer.Store, records.writer.Keys, options)
	w.Must(err)
	for _, p := range report.Problems {
		w.t.Errorf("evidence: %s", p)
	}
	all = slices.DeleteFunc(all, func(r evidence.Record) bool { return r.Plan.Namespace != w.Name })
	if joined := evidence.Join(all, w.audit(), evidence.JoinOptions{}); !joined.OK() {
		for _, p := range joined.Problems {
			w.t.Errorf("evidence and audit log: %s", p)
		}
	}
}

// audit reads what the executor wrote in this namespace.
func (w *world) audit() *evidence.AuditLog {
	w.t.Helper()
	file, err := os.Open(auditLog)
	w.Must(err)
	defer func() { w.Must(file.Close()) }()
	log := &evidence.AuditLog{}
	w.Must(evidence.ReadAudit(file, evidence.AuditFilter{Users: []string{executorUser}, Resources: []string{"deployments.apps"}}, log))
	var own []evidence.Write
	for _, write := range log.Writes {
		if write.Namespace == w.Name {
			own = append(own, write)
		}
	}
	log.Writes = own
	return log
}
