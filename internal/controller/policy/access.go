// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

const (
	// maxAccessRounds bounds how often one look plans anew without targets that may not
	// be written. A further look follows soon.
	maxAccessRounds = 5
	// deniedFor is how long the answer that a permission is missing is kept.
	deniedFor = 10 * time.Second
)

// named is a target of a plan that is to be made.
type named struct{ namespace, baseline string }

// denial is the answer that a permission is missing.
type denial struct {
	what  string
	until time.Time
}

// denials are those of each policy, kept for a while: a policy is looked at after each
// change of a drift.
type denials struct {
	mu     sync.Mutex
	policy map[string]map[named]denial
}

// known returns the denials of a policy that still count.
func (d *denials) known(policy string, now time.Time) map[named]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := map[named]string{}
	for of, denial := range d.policy[policy] {
		if denial.until.After(now) {
			known[of] = denial.what
		}
	}
	return known
}

// keep adds a denial.
func (d *denials) keep(policy string, of named, what string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.policy == nil {
		d.policy = map[string]map[named]denial{}
	}
	if d.policy[policy] == nil {
		d.policy[policy] = map[named]denial{}
	}
	d.policy[policy][of] = denial{what, now.Add(deniedFor)}
}

func (d *denials) forget(policy string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.policy, policy)
}

// plan plans, and leaves out the targets that the executor, or the author of the policy,
// may not write: each plan for them would end as skipped. The executor asks again before
// it writes.
func (r *Reconciler) plan(ctx context.Context, s *subject) {
	if r.Executor == "" || !s.acts() {
		s.out = planner.Make(&s.gathered.Input)
		return
	}
	s.gathered.Input.AccessAsked = true
	if s.access == nil {
		s.access = r.knownDenials(s)
	}
	for round := 0; ; round++ {
		drifts := s.gathered.Input.Drifts
		for i := range drifts {
			drifts[i].Denied = s.access[named{drifts[i].Namespace, drifts[i].Baseline}]
		}
		s.out = planner.Make(&s.gathered.Input)
		if round == maxAccessRounds || !r.askAccess(ctx, s) {
			return
		}
	}
}

// knownDenials returns those of the policy that still count. A person has other rights
// than the author of the policy, so a request begins with none.
func (r *Reconciler) knownDenials(s *subject) map[named]string {
	if s.request != nil {
		return map[named]string{}
	}
	return r.denials.known(s.policy.Name, s.now)
}

// askAccess asks for the targets of the plans that were not asked for yet, and says
// whether a permission is missing for one of them.
func (r *Reconciler) askAccess(ctx context.Context, s *subject) (denied bool) {
	for i := range s.out.Plans {
		p := &s.out.Plans[i]
		for j := range p.Targets {
			of := named{p.Namespace, p.Targets[j].BaselineName}
			if _, known := s.access[of]; known {
				continue
			}
			s.access[of] = r.denied(ctx, s.policy, p, &p.Targets[j])
			if s.access[of] == "" && protocol.StandsBy(&p.PlannedRemediation, int32(j)) { //nolint:gosec // the schema bounds targets
				s.access[of] = r.standbyDenied(ctx, s, p)
			}
			denied = denied || s.access[of] != ""
			if s.access[of] != "" && s.request == nil {
				r.denials.keep(s.policy.Name, of, s.access[of], s.now)
			}
		}
	}
	return denied
}

// denied says which permission a plan lacks for a target; empty when it lacks none, or
// the API server did not answer.
func (r *Reconciler) denied(ctx context.Context, policy *v1alpha1.RemediationPolicy, p *planner.Plan, target *v1alpha1.PlanTarget) string {
	access, err := exec.AccessTo(r.Client.RESTMapper(), p.Namespace, target)
	if never := exec.NotWritableError(""); errors.As(err, &never) {
		return never.Error()
	}
	if err != nil {
		r.Log.V(1).Info("permissions could not be asked for", "namespace", p.Namespace, "error", err.Error())
		return ""
	}
	principals := exec.Principals(&p.PlannedRemediation, &policy.Spec)
	var q questions
	q.add(access, r.Executor, access.ExecutorVerbs(), principals)
	if denied := r.firstDenied(ctx, &q); denied != "" {
		return denied
	}
	return r.firstMissing(ctx, principals)
}

// standbyDenied says which permission a plan lacks for standbys in its namespace; empty when it lacks
// none, or the API server did not answer. The answer is that of all targets of the namespace, and
// s.access has it under the namespace alone.
func (r *Reconciler) standbyDenied(ctx context.Context, s *subject, p *planner.Plan) string {
	of := named{namespace: p.Namespace}
	if _, known := s.access[of]; !known {
		var q questions
		for _, access := range exec.StandbyAccess(p.Namespace) {
			q.add(access, r.Executor, []string{access.Write}, exec.Principals(&p.PlannedRemediation, &s.policy.Spec))
		}
		s.access[of] = r.firstDenied(ctx, &q)
	}
	return s.access[of]
}

// questions are reviews, and what is missing if one of them answers no.
type questions struct {
	reviews []*authorizationv1.SubjectAccessReview
	missing []string
}

// add asks for the access of the executor, by each verb, and for that of the principals of a plan.
func (q *questions) add(access exec.Access, executor string, verbs []string, principals []planner.Principal) {
	for _, verb := range verbs {
		q.reviews, q.missing = append(q.reviews, access.ExecutorReview(executor, verb)), append(q.missing, access.ExecutorMayNot(verb))
	}
	for _, who := range principals {
		q.reviews, q.missing = append(q.reviews, access.RequesterReview(who)), append(q.missing, access.RequesterMayNot(who.User))
	}
}

// firstMissing names the first ServiceAccount among the principals that does not exist;
// empty when there is none, or the API server did not answer.
func (r *Reconciler) firstMissing(ctx context.Context, principals []planner.Principal) string {
	for _, who := range principals {
		missing, err := exec.MissingAccount(ctx, r.Live, who)
		if err != nil {
			r.Log.V(1).Info("a ServiceAccount could not be read", "user", who.User, "error", err.Error())
		}
		if missing != "" {
			return missing
		}
	}
	return ""
}

// firstDenied asks all questions beside each other, and names the first permission that is missing;
// empty when none is.
func (r *Reconciler) firstDenied(ctx context.Context, q *questions) string {
	refused := make([]bool, len(q.reviews))
	var group sync.WaitGroup
	for i, review := range q.reviews {
		group.Go(func() { refused[i] = r.refused(ctx, review) })
	}
	group.Wait()
	if i := slices.Index(refused, true); i >= 0 {
		return q.missing[i]
	}
	return ""
}

// refused says that a review answers no.
func (r *Reconciler) refused(ctx context.Context, review *authorizationv1.SubjectAccessReview) bool {
	if err := r.Client.Create(ctx, review); err != nil {
		r.Log.V(1).Info("permissions could not be asked for", "user", review.Spec.User, "error", err.Error())
		return false
	}
	return !exec.Allowed(&review.Status)
}
