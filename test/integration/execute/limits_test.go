// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// caps of an Environment; nil is none.
type caps struct{ concurrent, perHour, perDay *int32 }

// setCaps bounds the world's Environment.
func (w *world) setCaps(c caps) {
	w.t.Helper()
	e := &v1alpha1.Environment{}
	w.Must(admin.Get(w.t.Context(), client.ObjectKey{Name: w.environment}, e))
	e.Spec.Caps = v1alpha1.EnvironmentCaps{MaxConcurrent: c.concurrent, MaxPerHour: c.perHour, MaxPerDay: c.perDay}
	w.Must(admin.Update(w.t.Context(), e))
}

// taken counts the places of the cluster's ledger: all of them, which count for the
// hour and the day, and those of steps that have not ended.
func (w *world) taken() (all, open int32) {
	w.t.Helper()
	l := &v1alpha1.RemediationLedger{}
	w.Must(admin.Get(w.t.Context(), client.ObjectKey{Namespace: "plumbline-system", Name: exec.ClusterLedger}, l))
	for i := range l.Status.Entries {
		all++
		if l.Status.Entries[i].CompletionTime == nil {
			open++
		}
	}
	return all, open
}

// waitsFor waits until a plan says that a gate of a ledger holds it back, and checks
// that its target was not written.
func (w *world) waitsFor(plan *v1alpha1.RemediationPlan, gate, ledgerName string) {
	w.t.Helper()
	p := w.UntilPlan(plan, "it waits for "+gate, func(p *v1alpha1.RemediationPlan) bool {
		why := p.Status.DeferralReason
		return p.Status.Phase == v1alpha1.PlanDeferred && strings.HasPrefix(why, gate+": ") && strings.HasSuffix(why, "(ledger "+ledgerName+")")
	})
	if name := p.Spec.Plan.Targets[0].Name; imageOf(w.Live(name)) == guarded.Image {
		w.t.Errorf("%s was written while its plan waits for %s", name, gate)
	}
}

// lasting gives a plan more time than a test's clock is set forward.
func lasting(p *v1alpha1.PlannedRemediation) {
	p.DeadlineTime = metav1.NewTime(time.Now().Add(72 * time.Hour).Truncate(time.Second))
}

// Each limit of a policy, of its Environment and of the cluster holds a repair back by
// itself, and says so. One step is under way, and then it has ended; what waits beside
// it is looked at under one limit after the other, each time by another executor.
func TestEachLimitHoldsARepairBack(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard()     // nothing rolls out: the first step goes on
	for i := range 8 { // three of eleven are no mass drift
		w.Deploy(ci, fmt.Sprint("other-", i))
	}
	w.Drifted("web", "api", "db")
	tight := w.policy(slowly, selectsNothing, func(s *v1alpha1.RemediationPolicySpec) {
		s.Safety.MaxConcurrent, s.Safety.MaxPerHour, s.Safety.MaxPerDay = 1, 1, 1
	})
	wide := w.policyBy(platform, w.Name+"-wide", slowly, selectsNothing, func(s *v1alpha1.RemediationPolicySpec) { s.Safety.MaxConcurrent = 10 })
	records, now := newEvidence(t), &inprocess.Ahead{}
	w.setCaps(caps{concurrent: new(int32(1))})
	running := startExecutor(t, records)
	// under has another executor look, with other limits.
	under := func(environment caps, cluster ledger.Caps) {
		t.Helper()
		running.Halt(t)
		w.setCaps(environment)
		running = startExecutor(t, records, func(s *executor.Setup) {
			s.Caps, s.Clock = cluster, now
			now.Dates(s.Config)
		})
	}
	first := w.plan(tight, "web", lasting)
	w.UntilPlan(first, "the first has written", hasWritten)
	own, other := w.plan(tight, "api", lasting), w.plan(wide, "db", lasting)
	w.waitsFor(own, "MaxConcurrent", w.environment)
	w.waitsFor(other, "CapConcurrent", w.environment)
	_, open := w.taken()
	under(caps{}, ledger.Caps{Concurrent: &open})
	w.waitsFor(other, "CapConcurrent", exec.ClusterLedger)

	under(caps{perHour: new(int32(1))}, ledger.Caps{})
	w.Rollouts()
	if first = w.Ended(first); first.Status.Phase != v1alpha1.PlanSucceeded {
		t.Fatalf("the first plan is %s", remediation.Describe(first))
	}
	w.waitsFor(own, "MaxPerHour", w.environment)
	w.waitsFor(other, "CapPerHour", w.environment)
	under(caps{perDay: new(int32(1))}, ledger.Caps{})
	w.waitsFor(other, "CapPerDay", w.environment)
	all, _ := w.taken()
	under(caps{}, ledger.Caps{PerHour: &all})
	w.waitsFor(other, "CapPerHour", exec.ClusterLedger)
	under(caps{}, ledger.Caps{PerDay: &all})
	w.waitsFor(other, "CapPerDay", exec.ClusterLedger)

	under(caps{}, ledger.Caps{})
	if other = w.Ended(other); other.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("without a limit in its way the plan is %s", remediation.Describe(other))
	}
	running.Halt(t)
	now.Set(time.Now().Add(90 * time.Minute)) // the hour is over, the day is not
	under(caps{}, ledger.Caps{})
	w.waitsFor(own, "MaxPerDay", w.environment)
	w.settled(2)
	w.proven(records, first, other)
}
