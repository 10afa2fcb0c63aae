// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/internal/revisions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Revisions reads which revision a workload has.
type Revisions interface {
	// Read returns the zero Arm if the workload is not there. The labels are those that the revisions of
	// its pods have.
	Read(ctx context.Context, workload traffic.Workload, labels []string) (rollout.Arm, error)
}

// Clones reads a variation that is a clone, and the variation that it is made from.
type Clones interface {
	ReadClone(ctx context.Context, visit *revisions.Visit) (revisions.Pair, error)
	// Forget drops the memory of a release that is gone.
	Forget(release types.NamespacedName)
}

// errNoDelivery says that the installation carries out no rollouts.
var errNoDelivery = errors.New("spec.rollout: rollouts are not enabled here: set delivery.enabled in the values of the chart")

// shiftTerms has the split follow the stage that the rollout is in.
func (s *subject) shiftTerms(terms release.Terms) release.Terms {
	if s.release.Spec.Rollout == nil {
		return terms
	}
	state := rollout.StateOf(&s.release.Status)
	active, weight := state.Active, state.Weight()
	if active == "" {
		active = string(s.release.Spec.Stable)
	}
	comparison := state.Comparison()
	if s.ordered {
		weight, comparison.Weight = 0, 0
	}
	return shifted(terms, active, weight, comparison, state.IsChecking() && !s.ordered)
}

// shifted terms give the canary a weight, and the fresh control its own one. In a cohort check the active variation
// serves both.
func shifted(terms release.Terms, active string, weight traffic.Weight, comparison rollout.Comparison, checking bool) release.Terms {
	if terms = terms.Shift(active, weight); comparison.HasControl {
		terms = terms.Compare(comparison.Weight)
	}
	if checking {
		return terms.Check()
	}
	return terms
}

// isChecked tells whether terms are those of a cohort check.
func isChecked(terms release.Terms) bool {
	return slices.ContainsFunc(terms.Split.Variations, func(v traffic.Variation) bool { return v.ServedBy != "" })
}

// roll decides how far the rollout is. If the weight of the canary changes, it decides about the split
// once more.
func (r *Reconciler) roll(ctx context.Context, s *subject) error {
	if s.release.Spec.Rollout == nil || s.rival != nil || s.decision.After == nil {
		return r.windUp(ctx, s)
	}
	before := rollout.StateOf(&s.release.Status)
	works, err := r.workAnswers(ctx, s, &before) // before the groups, as with groups alone
	if err != nil {
		return err
	}
	facts := r.rolloutFacts(ctx, s)
	facts.Works = works
	if s.selected, err = r.findSelected(ctx, s, &facts); err != nil {
		return err
	}
	r.joinGroups(ctx, s, &facts)
	if facts.Deletion = s.deletionOf(&facts, s.selected); facts.Deletion == nil {
		facts.Health = facts.JoinHealth(r.analyze(ctx, s, facts.Before, facts.Standing))
		facts.Cohort = s.cohort
	} else if s.unknown {
		return fmt.Errorf("returning the requests of release %s/%s: its workloads cannot be read", s.release.Namespace, s.release.Name)
	}
	facts.Answers = r.gateAnswers(s)
	decision := rollout.Decide(facts)
	s.rollout, s.tally = &decision, rollout.TallyOf(facts, decision)
	if s.analysis != nil {
		s.tally.Counts = rollout.CountsOf(s.analysis.State).Since(s.analysis.stored)
	}
	r.Metrics.countAnswers(client.ObjectKeyFromObject(s.release), decision.After.Gates, facts.Answers)
	now := s.decision.After.Terms()
	if s.facts.Terms != nil {
		now = *s.facts.Terms
	}
	terms, prepares := shifted(now, decision.After.Active, decision.Weight, decision.Comparison, decision.Checking), r.prepares(s, decision.After)
	if sameWishes(terms.Wishes, now.Wishes) && isChecked(terms) == isChecked(now) && prepares == s.facts.Prepares {
		return nil
	}
	s.facts.Terms, s.facts.Prepares, s.seen = &terms, prepares, nil
	return r.decide(ctx, s)
}

func sameWishes(a, b []traffic.Wish) bool {
	return slices.EqualFunc(a, b, func(a, b traffic.Wish) bool { return a.Variation == b.Variation && a.Weight == b.Weight })
}

// specFacts are what the spec and the status say, whatever a run divides.
func (r *Reconciler) specFacts(ctx context.Context, s *subject) rollout.Facts {
	in := s.release.Spec.Rollout
	f := rollout.Facts{
		Stable: string(s.release.Spec.Stable), Control: rollout.ControlOf(in.Control), Paused: in.Pause == v1alpha1.Enabled, Approval: rollout.ApprovalOf(in),
		Webhooks: rollout.WebhooksOf(s.release), Before: rollout.StateOf(&s.release.Status), Arms: map[string]rollout.Arm{}, Groups: rollout.GroupsOf(s.release), Routers: s.nameRouters(), Now: s.now,
	}
	var err error
	if f.Plan, err = r.plan(ctx, s); err != nil {
		f.Problem = err.Error()
	}
	return f
}

func (r *Reconciler) rolloutFacts(ctx context.Context, s *subject) rollout.Facts {
	f := r.specFacts(ctx, s)
	f.Ordered, f.Standing = s.ordered, s.rolloutStanding()
	for i := range s.decision.After.Split.Variations[:2] {
		f.Variations[i] = s.decision.After.Split.Variations[i].Name
	}
	if s.invalid != nil {
		f.Plan, f.Problem = nil, s.invalid.Error()
	}
	if r.Revisions == nil || s.endpoints == nil {
		return f
	}
	cloned := rollout.CloneOf(s.release)
	if cloned != nil {
		r.readClone(ctx, s, &f, cloned)
	}
	for _, v := range s.decision.After.Split.Variations {
		isControl := v.Name == string(v1alpha1.FreshControl)
		if v.Workload == nil || cloned != nil && !isControl {
			continue
		}
		arm, err := r.readArm(ctx, *v.Workload, s.endpoints[v.Name].Revisions)
		switch {
		case err != nil && isControl: // no deletion waits for it
			r.tellUnread(s, v.Name, err)
			continue
		case err != nil:
			r.unread(s, v.Name, err)
			continue
		}
		arm.Ready = s.endpoints[v.Name].Ready
		f.Arms[v.Name] = arm
	}
	return f
}

// readArm reads a workload, and does not wait long for an API server that does not answer.
func (r *Reconciler) readArm(ctx context.Context, workload traffic.Workload, labels []string) (rollout.Arm, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return r.Revisions.Read(ctx, workload, labels)
}

// unread notes that a workload could not be read: nothing moves forward, and what is in force goes on.
func (r *Reconciler) unread(s *subject, variation string, err error) {
	s.unknown = true
	r.tellUnread(s, variation, err)
}

func (r *Reconciler) tellUnread(s *subject, variation string, err error) {
	if errors.Is(err, errAbsent) { // a vigil knows that
		return
	}
	r.Log.Info("the revision of a variation is not known; it is read again", "release", s.release.Namespace+"/"+s.release.Name, "variation", variation, "error", err.Error())
}

// plan is what the release asks for.
func (r *Reconciler) plan(ctx context.Context, s *subject) (*rollout.Plan, error) {
	switch {
	case r.Revisions == nil:
		return nil, errNoDelivery
	case s.sharedCanary != nil:
		return nil, s.sharedCanary
	}
	if s.release.Spec.HasRequests() {
		if err := s.router.Capabilities().CheckMeasured(); err != nil {
			return nil, fmt.Errorf("spec.rollout: %w", err)
		}
	}
	var named *v1alpha1.RolloutStrategySpec
	if name := s.release.Spec.Rollout.StrategyName; name != "" {
		strategy := &v1alpha1.RolloutStrategy{}
		switch err := r.Client.Get(ctx, types.NamespacedName{Name: name}, strategy); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("reading RolloutStrategy %s: %w", name, err)
		default:
			named = &strategy.Spec
		}
	}
	return rollout.PlanOf(s.release, named, r.Installation)
}

// rolloutStanding is what has become of the split that is in force.
func (s *subject) rolloutStanding() rollout.Standing {
	wanted := s.decision.After.Wanted
	standing := rollout.Standing{Active: wanted.Stable(), Weight: wanted[1].Weight, Comparison: comparisonOf(wanted), Checking: isChecked(s.decision.After.Terms())}
	switch s.standing() {
	case release.Acknowledged, release.Proceeded:
		standing.Acknowledged = true
	case release.Acknowledging, release.Overdue, release.Unobserved, release.Unrouted, release.NotYetRedirected:
	}
	return standing
}

// comparisonOf returns the place of a fresh control in shares.
func comparisonOf(shares traffic.Shares) rollout.Comparison {
	at := slices.IndexFunc(shares, func(s traffic.Share) bool { return s.Variation == string(v1alpha1.FreshControl) })
	if at < 0 {
		return rollout.Comparison{}
	}
	return rollout.Comparison{HasControl: true, Weight: shares[at].Weight}
}

// rolloutAgain is when time alone moves the rollout; zero if it does not.
func (s *subject) rolloutAgain() time.Time {
	if s.rollout == nil {
		return time.Time{}
	}
	return s.rollout.Again
}

// writeRollout stores how far the rollout is.
func (r *Reconciler) writeRollout(s *subject, was, status *v1alpha1.ABReleaseStatus) {
	switch {
	case s.rollout != nil:
		s.rollout.After.Write(status)
		if r.writeAnalysis(s, was, status); s.release.Spec.HasGroups() {
			s.writeGroups(status)
		}
	case s.release.Spec.Rollout == nil:
		status.ActiveVariation, status.Rollout = "", nil
	}
}

// writeProgressing says whether a run is under way. Ready says something else: that proxies have what is
// in force, so that a tool which waits for Ready does not wait for an approval.
func (s *subject) writeProgressing(set condition.Set) {
	if s.release.Spec.Rollout == nil {
		if meta.FindStatusCondition(*set.Conditions, v1alpha1.ConditionProgressing) != nil {
			set.Put(v1alpha1.ConditionProgressing, metav1.ConditionFalse, "NoRollout", "the release has no spec.rollout")
		}
		return
	}
	if s.rollout == nil || s.rollout.After.Run == nil {
		set.Put(v1alpha1.ConditionProgressing, metav1.ConditionFalse, "NoRun", s.noRunText())
		return
	}
	after := &s.rollout.After
	status, reason, message := metav1.ConditionTrue, string(after.Run.State), fmt.Sprintf("run %d", after.Run.Number)
	if after.Run.State.Ended() {
		status, message = metav1.ConditionFalse, fmt.Sprintf("run %d: %s", after.Run.Number, after.Run.EndMessage)
	} else if w := after.Waiting; w != nil {
		reason, message = string(w.Reason), fmt.Sprintf("run %d waits for %s", after.Run.Number, w.Reason)
	}
	set.Put(v1alpha1.ConditionProgressing, status, reason, message)
}

func (s *subject) noRunText() string {
	if s.rollout != nil && s.rollout.Problem != "" {
		return s.rollout.Problem
	}
	return "no variation has a revision to roll out"
}

// tellRollout makes Events, and lines of the log, of what has become of the run.
func (r *Reconciler) tellRollout(s *subject) {
	if s.rollout == nil {
		return
	}
	for _, e := range s.rollout.Events {
		r.event(s, e.Warning, eventReasons[e.Name], e.Message)
		r.Log.Info(string(e.Name), "event", string(e.Name), "namespace", s.release.Namespace, "release", s.release.Name, "run", e.Run, "number", e.Number, "message", e.Message)
	}
}

// eventReasons are the reasons of Events, which are words without dots.
var eventReasons = map[rollout.EventName]string{
	rollout.RunCreated: "RunCreated", rollout.RunStarted: "RunStarted", rollout.StageAdvanced: "StageAdvanced", rollout.RunPromoted: "RunPromoted",
	rollout.RunRolledBack: "RunRolledBack", rollout.StageStarted: "StageStarted", rollout.StagePassed: "StagePassed", rollout.StageHasFailed: "StageFailed",
	rollout.MeasurementVoided: "MeasurementVoided", rollout.WaitOverdue: "WaitOverdue", rollout.VerbAnswered: "VerbAnswered",
	rollout.RequestsReturned: "RequestsReturned", rollout.WorkNotDone: "WorkNotDone", rollout.CohortCheckStarted: "CohortCheckStarted", rollout.CohortCheckEnded: "CohortCheckEnded", rollout.BaselineUpdated: "BaselineUpdated",
	rollout.ChangeQueued: "ChangeQueued", rollout.MinimumHeld: "MinReplicasHeld", rollout.MinimumPutBack: "MinReplicasPutBack",
	rollout.ControlEnded: "ControlEnded",
}
