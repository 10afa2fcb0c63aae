// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// awaitsVerdicts has an executor copy verdicts, and have them turn breakers.
func awaitsVerdicts(s *executor.Setup) { s.AssessesEffects = true }

// planCount waits until there are so many plans, all of which have ended.
func (w *world) planCount(n int) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("%d plans have succeeded", n), func() error {
		succeeded := 0
		for _, p := range w.plans() {
			if p.Status.Phase == v1alpha1.PlanSucceeded {
				succeeded++
			}
		}
		if succeeded != n {
			return fmt.Errorf("%d plans have", succeeded)
		}
		return nil
	})
}

// invalidatedPlans waits until so many plans say that their write was undone.
func (w *world) invalidatedPlans(n int) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("%d plans say that their write was undone", n), func() error {
		undone := 0
		for _, p := range w.plans() {
			if p.Status.Effect == v1alpha1.VerdictInvalidated {
				undone++
			}
		}
		if undone != n {
			return fmt.Errorf("%d plans do", undone)
		}
		return nil
	})
}

// A bot that undoes each repair is slower than a fight. After three repairs the drift is left to people, who are
// told once, until a person forgives.
func TestAFixThatABotUndoesThreeTimesIsLeftToPeople(t *testing.T) {
	now := clockOf(t, assessesEffects)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.crowd(6) // one of seven is no mass drift
	w.Drifted("web")
	startExecutor(t, newEvidence(t), awaitsVerdicts, func(s *executor.Setup) { s.Clock = now; now.Dates(s.Config) })
	policy := w.policy(busyWriters, func(s *v1alpha1.RemediationPolicySpec) {
		s.Safety.Cooldown = &metav1.Duration{}
		s.Health.Stabilization = &metav1.Duration{}
	})
	began := time.Now()
	for undone := 1; undone <= 3; undone++ {
		w.planCount(undone)
		w.UntilIs("web", "InSync")
		now.Set(began.Add(time.Duration(undone) * 15 * time.Minute)) // a fight is quicker
		w.SetImage(mallory, "web", remediation.EvilImage)
		w.invalidatedPlans(undone)
	}
	w.untilWaits(policy, "1 IneffectiveChain (it is again as before each of the last 3 repairs")
	w.plugin().answers(0, []string{"policy", "explain", policy.Name, "deployment/web"}, "Effect", "a chain of 3 repairs")
	w.plugin().answers(0, []string{"plan", "preview", policy.Name}, "IneffectiveChain")
	w.plugin().answers(0, []string{"assess", "history", "deployment/web"}, "Regression", "Invalidated")
	w.Eventually("people are told once", func() error {
		if n := w.escalations(policy); n != 1 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	w.planCount(3)
	w.forgives(policy, now)
	w.planCount(4)
	if n := w.escalations(policy); n != 1 {
		t.Errorf("people were told %d times", n)
	}
}

// forgives lets a policy repair again, as the plugin does of which the clock is right.
func (w *world) forgives(policy *v1alpha1.RemediationPolicy, now *inprocess.Ahead) {
	w.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationChainsForgiven, now.Now().UTC().Format(time.RFC3339))
	w.Must(w.As(platform).Patch(w.t.Context(), policy.DeepCopy(), client.RawPatch("application/merge-patch+json", patch)))
}

// mortal is an executor that dies at its first write of a plan of the namespace after a ledger has the verdict. Plans
// that other tests left behind may get a verdict earlier.
type mortal struct {
	namespace string
	mu        sync.Mutex
	dead      bool
}

var errExecutorDead = errors.New("the executor is dead")

func (m *mortal) option(s *executor.Setup) {
	s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if m.dies(r) {
				return nil, errExecutorDead
			}
			return next.RoundTrip(r)
		})
	})
}

func (m *mortal) dies(r *http.Request) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	ofPlan := strings.Contains(r.URL.Path, "/namespaces/"+m.namespace+"/remediationplans/")
	m.dead = m.dead || r.Method == http.MethodPut && ofPlan && strings.Contains(bodyOf(r), `"effect"`)
	return m.dead
}

// bodyOf returns the body of a request, which is sent all the same.
func bodyOf(r *http.Request) string {
	if r.GetBody == nil {
		return ""
	}
	body, err := r.GetBody()
	if err != nil {
		return ""
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return ""
	}
	return string(raw)
}

// opensBreaker stores a ledger whose breaker has been open for long enough.
func (w *world) opensBreaker(policy *v1alpha1.RemediationPolicy) {
	w.t.Helper()
	l := &v1alpha1.RemediationLedger{
		ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: w.environment}, Spec: v1alpha1.RemediationLedgerSpec{Scope: "Environment"},
	}
	own := w.As(remediation.ExecutorUser)
	w.Must(own.Create(w.t.Context(), l))
	opened := metav1.NewTime(time.Now().Add(-time.Hour))
	l.Status.Sequence = 1
	l.Status.Breakers = []v1alpha1.LedgerBreaker{{PolicyUID: string(policy.UID), State: v1alpha1.BreakerOpen, Failures: 1, LastOpenTime: &opened}}
	w.Must(own.Status().Update(w.t.Context(), l))
}

// toldAssessments are those of a plan that records tell of.
func (w *world) toldAssessments(of evidenceStore, plan *v1alpha1.RemediationPlan) []evidence.Assessment {
	w.t.Helper()
	var told []evidence.Assessment
	records := of.records()
	_, err := evidence.Verify(w.t.Context(), records.Store, records.Keys, evidence.Options{Each: func(s evidence.Sealed) {
		if r := &s.Record; r.Assessment != nil && r.Plan.UID == string(plan.UID) {
			told = append(told, *r.Assessment)
		}
	}})
	w.Must(err)
	return told
}

// A half-open breaker waits for the verdict on its probe. The executor dies after the ledger has the verdict, and
// before the plan has it: another one tells both, and the verdict counts once.
func TestAnExecutorThatDiesBetweenBreakerAndPlanTellsTheVerdictOnce(t *testing.T) {
	startAssessor(t, assessesEffects)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	policy := w.policy(selectsNothing, measuredShortly, func(s *v1alpha1.RemediationPolicySpec) {
		s.Safety.CircuitBreaker = v1alpha1.CircuitBreakerSettings{FailureThreshold: 1, OpenDuration: &metav1.Duration{Duration: time.Minute}}
	})
	w.opensBreaker(policy)
	records := newEvidence(t)
	first := startExecutor(t, records, awaitsVerdicts, (&mortal{namespace: w.Name}).option)
	plan := w.Ended(w.plan(policy, "web"))
	if plan.Status.Phase != v1alpha1.PlanSucceeded || w.breaker() != v1alpha1.BreakerHalfOpen {
		t.Fatalf("after %s the breaker is %s", remediation.Describe(plan), w.breaker())
	}
	w.SetImage(mallory, "web", remediation.EvilImage)
	w.Eventually("the verdict opens the breaker again", func() error {
		if got := w.breaker(); got != v1alpha1.BreakerOpen {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
	first.Halt(t)
	startExecutor(t, records, awaitsVerdicts)
	plan = w.UntilPlan(plan, "the plan has the verdict", func(p *v1alpha1.RemediationPlan) bool { return p.Status.Effect == v1alpha1.VerdictInvalidated })
	if e := plan.Status.Steps[0].Effect.Evidence; e == nil {
		t.Error("the plan names no record of the assessment")
	}
	if told := w.toldAssessments(records, plan); len(told) != 1 || told[0].Verdict != "Invalidated" || told[0].Reason != "spec_drift" {
		t.Errorf("the records tell of %+v", told)
	}
	w.proven(records, plan)
	l := &v1alpha1.RemediationLedger{}
	w.Must(admin.Get(t.Context(), client.ObjectKey{Namespace: "plumbline-system", Name: w.environment}, l))
	b := l.Status.Breakers[0]
	if b.State != v1alpha1.BreakerOpen || b.Failures != 2 || b.Generation != 1 {
		t.Errorf("the breaker is %+v", b)
	}
}
