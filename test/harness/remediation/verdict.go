// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// Records are where evidence is, and by which keys it is believed.
type Records struct {
	Store evidence.Store
	Keys  *evidence.Keyring
}

// Verdict says what is wrong once plans have ended, whatever happened on the way:
// a step that wrote twice, a place or a claim that nobody gives back, records that
// are not whole or are not the writes of the audit log. It is empty when nothing is.
func (w *World) Verdict(records Records, plans ...*v1alpha1.RemediationPlan) []string {
	w.t.Helper()
	log := w.Writes()
	wrong := severalWrites(log)
	wrong = append(wrong, w.leftPlaces()...)
	for _, p := range plans {
		wrong = append(wrong, w.leftClaims(p)...)
		wrong = append(wrong, w.leftSteps(p)...)
	}
	return append(wrong, w.leftRecords(records, log, plans, false)...)
}

// Unproven says what is wrong with the records of plans that have ended: steps without
// one, records that are not whole, or are not the writes of the audit log. The store
// may have records of other worlds.
func (w *World) Unproven(records Records, plans ...*v1alpha1.RemediationPlan) []string {
	w.t.Helper()
	var wrong []string
	for _, p := range plans {
		wrong = append(wrong, w.leftSteps(p)...)
	}
	return append(wrong, w.leftRecords(records, w.Writes(), plans, true)...)
}

// Writes are those of the executor in the world, by the audit log.
func (w *World) Writes() *evidence.AuditLog {
	w.t.Helper()
	log, err := w.audit.Writes(w.Name)
	w.Must(err)
	return log
}

// severalWrites finds steps of which more than one write was stored. A fence is no
// effect of a step.
func severalWrites(log *evidence.AuditLog) []string {
	stored := map[string]int{}
	for i := range log.Writes {
		if write := &log.Writes[i]; write.Certain && !write.Fence {
			stored[write.Plan+" step "+write.Step+" "+write.Name]++
		}
	}
	var wrong []string
	for _, step := range slices.Sorted(maps.Keys(stored)) {
		if n := stored[step]; n > 1 {
			wrong = append(wrong, fmt.Sprintf("%d writes were stored for %s", n, step))
		}
	}
	return wrong
}

// Ledgers are those of the world and of the cluster.
func (w *World) Ledgers() []v1alpha1.RemediationLedger {
	w.t.Helper()
	var all []v1alpha1.RemediationLedger
	for _, name := range []string{w.Name, exec.ClusterLedger} {
		var l v1alpha1.RemediationLedger
		w.Must(w.cluster.Admin.Get(w.t.Context(), client.ObjectKey{Namespace: rendered.Namespace, Name: name}, &l))
		all = append(all, l)
	}
	return all
}

// Held says which places the plans of the namespace hold, and which targets this one has.
func (w *World) Held(p *v1alpha1.RemediationPlan) []string {
	w.t.Helper()
	return append(w.leftPlaces(), w.leftClaims(p)...)
}

func (w *World) leftPlaces() []string {
	var wrong []string
	for _, l := range w.Ledgers() {
		for i := range l.Status.Entries {
			if e := &l.Status.Entries[i]; e.Namespace == w.Name && e.CompletionTime == nil {
				wrong = append(wrong, fmt.Sprintf("ledger %s holds a place for step %d", l.Name, e.Step))
			}
		}
	}
	return wrong
}

func (w *World) leftClaims(p *v1alpha1.RemediationPlan) []string {
	var wrong []string
	for i := range p.Spec.Plan.Targets {
		name := p.Spec.Plan.Targets[i].Name
		b, err := w.Baseline(name)
		w.Must(err)
		if b.Status.PlanName != "" {
			wrong = append(wrong, fmt.Sprintf("%s is still claimed by %s", name, b.Status.PlanName))
		}
	}
	return wrong
}

func (w *World) leftSteps(p *v1alpha1.RemediationPlan) []string {
	var wrong []string
	for i := range p.Status.Steps {
		s := &p.Status.Steps[i]
		if s.Settled != v1alpha1.Enabled || s.Evidence == nil {
			wrong = append(wrong, fmt.Sprintf("step %d is %s, settled %q, evidence %v", i, s.State, s.Settled, s.Evidence))
		}
	}
	return wrong
}

// leftRecords looks at all records of the store, or at those of the world's own alone.
func (w *World) leftRecords(records Records, log *evidence.AuditLog, plans []*v1alpha1.RemediationPlan, own bool) []string {
	var all []evidence.Record
	options := evidence.Options{Heads: map[string]evidence.Head{}, Each: func(s evidence.Sealed) {
		if !own || s.Record.Plan.Namespace == w.Name {
			all = append(all, s.Record)
		}
	}}
	for _, l := range w.Ledgers() {
		for _, c := range l.Status.Chains {
			options.Heads[c.PolicyUID] = evidence.Head{Sequence: c.Sequence, Digest: c.Digest}
			if own {
				options.Chains = append(options.Chains, c.PolicyUID)
			}
		}
	}
	for _, p := range plans {
		options.Plans = append(options.Plans, packet.StatusOf(p))
	}
	report, err := evidence.Verify(w.t.Context(), records.Store, records.Keys, options)
	w.Must(err)
	var wrong []string
	for _, p := range report.Problems {
		wrong = append(wrong, "evidence: "+p.String())
	}
	for _, p := range evidence.Join(all, log, evidence.JoinOptions{}).Problems {
		wrong = append(wrong, "evidence and audit log: "+p.String())
	}
	return wrong
}

// Account tells what a plan left behind, in lines that do not depend on when and by
// whom it was carried out: no names, times, versions, uids or epochs.
func (w *World) Account(plan *v1alpha1.RemediationPlan, records Records) string {
	w.t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "plan %s, %+v\n", plan.Status.Phase, plan.Status.Counts)
	for i := range plan.Status.Steps {
		s := &plan.Status.Steps[i]
		fmt.Fprintf(&out, "step %d %s %s, settled %s, result %t\n", i, s.State, s.Reason, s.Settled, s.Result != nil)
	}
	for i := range plan.Spec.Plan.Targets {
		w.accountOf(&out, plan.Spec.Plan.Targets[i].Name)
	}
	for _, l := range w.Ledgers() {
		name := strings.ReplaceAll(l.Name, w.Name, "environment")
		// The number of writes is left out: an executor that takes over grants once more.
		fmt.Fprintf(&out, "ledger %s, grants from %v\n", name, l.Status.GrantStartTime != nil)
		for i := range l.Status.Entries {
			e := &l.Status.Entries[i]
			fmt.Fprintf(&out, "  step %d %s\n", e.Step, e.Outcome)
		}
		for i := range l.Status.Breakers {
			fmt.Fprintf(&out, "  breaker %s, %d failures\n", l.Status.Breakers[i].State, l.Status.Breakers[i].Failures)
		}
	}
	_, err := evidence.Verify(w.t.Context(), records.Store, records.Keys, evidence.Options{Each: func(s evidence.Sealed) {
		step := ""
		if s.Record.Step != nil {
			step = fmt.Sprint(s.Record.Step.Index)
		}
		fmt.Fprintf(&out, "record %d %s %s %s %s\n", s.Record.Chain.Sequence, s.Record.Kind, step, s.Record.Result.State, s.Record.Result.Reason)
	}})
	w.Must(err)
	return out.String()
}

// accountOf tells of one target. Its generation counts the writes of its spec by
// whomever, independent of any log.
func (w *World) accountOf(out *strings.Builder, name string) {
	w.t.Helper()
	d := w.Live(name)
	var labels []string
	for label := range d.Labels {
		labels = append(labels, label)
	}
	slices.Sort(labels)
	fmt.Fprintf(out, "%s runs %s, generation %d, labels %s\n", name, d.Spec.Template.Spec.Containers[0].Image, d.Generation, strings.Join(labels, " "))
	b, err := w.Baseline(name)
	w.Must(err)
	fmt.Fprintf(out, "  %s, claimed %t, authorized %t\n", b.Status.State, b.Status.PlanName != "", b.Spec.Authorized != nil && b.Status.Observed.Hash == b.Spec.Authorized.Hash)
}
