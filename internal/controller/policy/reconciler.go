// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/lag"
	"github.com/plumbline-dev/plumbline/internal/planning"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

// FieldManager names the assessor in managedFields.
const FieldManager = "plumbline-assessor"

const (
	// notReadyAgain is how soon a policy is looked at again when the guards were
	// not read yet.
	notReadyAgain = 200 * time.Millisecond
	// healthAgain is how soon one is that waits for objects to become healthy or readable, for a
	// permission, for the end of a rollout, or for a GitOps tool to let go of them, of which no event tells.
	healthAgain = 15 * time.Second
	// underWayAgain is how soon a policy with a plan under way is looked at again: the executor
	// asks for the number of healthy objects, and no event tells that number.
	underWayAgain = 5 * time.Second
	// clockAgain is how soon one is that waits for the clocks to agree.
	clockAgain = 15 * time.Second
)

// Notifier tells people, and decides on the receivers of each message by itself. It must
// not block.
type Notifier interface {
	Notify(notify.Event)
}

// Reconciler makes the plans of one policy after the other.
type Reconciler struct {
	Client client.Client
	// Live reads the plans under way past the cache.
	Live   client.Reader
	Source planning.Source
	// Namespace is Plumbline's own, where the ledgers are.
	Namespace string
	Recorder  events.EventRecorder
	Metrics   *Metrics
	// Notifier may be nil.
	Notifier Notifier
	// Clock is the API server's, as far as it is known.
	Clock clock.PassiveClock
	// Skew is how far the own clock is ahead of the API server's, or
	// window.SkewUnknown; nil means that the clocks agree. A decision on the time of day
	// waits while the clocks differ, here as in the executor.
	Skew func() time.Duration
	// Executor is the user name of the executor. A plan needs the permissions of the executor
	// before it is made. Executor is empty without an executor.
	Executor string
	// Effectiveness says that the installation assesses effects: a policy is looked at when an assessment ends.
	Effectiveness bool
	// ResyncPeriod is that of the command line; nil without one.
	ResyncPeriod *time.Duration
	Log          logr.Logger

	trigger  trigger
	settling settling
	told     memory
	denials  denials
	lags     lag.Times
}

// subject is one policy, with the known facts and the decisions about it.
type subject struct {
	policy *v1alpha1.RemediationPolicy
	// request of a person that is answered; nil for a plan that the policy makes by itself.
	request *v1alpha1.RemediationRequest
	// unanswered says that more requests wait than one look answers.
	unanswered bool
	gathered   *planning.Gathered
	out        planner.Output
	created    []*v1alpha1.RemediationPlan
	// access holds the answers of this look: the missing permission, or empty.
	access map[named]string
	// nextKept is when the status keeps more of the messages to people; zero when it has all.
	nextKept time.Time
	now      time.Time
	skew     time.Duration
	// lag is how long the stored status may still lag behind; zero when it does not.
	lag time.Duration
}

// Reconcile looks at one policy.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s := &subject{policy: &v1alpha1.RemediationPolicy{}}
	err := r.Client.Get(ctx, request.NamespacedName, s.policy)
	if apierrors.IsNotFound(err) {
		r.forget(request.Name)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading policy %s: %w", request.Name, err)
	}
	s.skew = r.compareClocks(ctx, s.policy)
	s.now = r.Clock.Now()
	if err := r.decide(ctx, s, nil); err != nil {
		if errors.Is(err, planning.ErrNotReady) {
			return reconcile.Result{RequeueAfter: notReadyAgain}, nil
		}
		return reconcile.Result{}, err
	}
	failed := errors.Join(r.answerRequests(ctx, s), r.create(ctx, s))
	r.tell(s)
	r.Metrics.looked(s)
	if err := r.writeStatus(ctx, s); err != nil {
		failed = errors.Join(failed, err)
	}
	return reconcile.Result{RequeueAfter: s.again()}, failed
}

// decide gathers the facts that the policy depends on, and plans. live are plans that were
// read past the cache.
func (r *Reconciler) decide(ctx context.Context, s *subject, live []v1alpha1.RemediationPlan) error {
	q := planning.Question{
		Policy: s.policy, InitiatedBy: planner.InitiatedByItself, Now: s.now,
		ResyncPeriod: r.ResyncPeriod, Plans: live,
	}
	q.Skew = s.skew
	if s.request != nil {
		q.Request, q.InitiatedBy, q.InitiatedByGroups = s.request, s.request.Spec.RequestedBy, s.request.Spec.RequestedByGroups
	}
	gathered, err := planning.Gather(ctx, r.Source, q)
	if err != nil {
		return err
	}
	s.gathered, s.out = gathered, planner.Output{}
	if len(gathered.Problems) == 0 {
		r.plan(ctx, s)
	}
	return nil
}

// compareClocks finds how far the own clock is ahead. It asks the API server for the time
// where no answer has told the time for long.
func (r *Reconciler) compareClocks(ctx context.Context, policy *v1alpha1.RemediationPolicy) time.Duration {
	if r.Skew == nil {
		return 0
	}
	if skew := r.Skew(); skew != window.SkewUnknown {
		return skew
	}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(policy), &v1alpha1.RemediationPolicy{}); err != nil && ctx.Err() == nil {
		r.Log.V(1).Info("the clocks could not be compared", "policy", policy.Name, "error", err.Error())
	}
	return r.Skew()
}

// acts says whether the policy may make plans and tell people.
func (s *subject) acts() bool {
	return s.policy.Spec.Mode == v1alpha1.PolicyModeActive && s.policy.DeletionTimestamp == nil && len(s.gathered.Problems) == 0
}

// again is when to look without an event.
func (s *subject) again() time.Duration {
	next := earlier(s.nextLook(), s.nextKept)
	if len(s.gathered.Input.UnderWay) > 0 { // not in the status, which would be written each time
		next = earlier(next, s.now.Add(underWayAgain))
	}
	if s.unanswered {
		next = earlier(next, s.now.Add(moreAnswers))
	}
	if s.lag > 0 {
		next = earlier(next, s.now.Add(s.lag))
	}
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(s.now), time.Millisecond)
}

// nextLook is the time of the next change by time alone; zero without one.
func (s *subject) nextLook() time.Time {
	if len(s.gathered.Problems) > 0 {
		return time.Time{}
	}
	next := earlier(s.out.NextLook, s.nextTooOld())
	if s.clockUncertain() { // no event tells that clocks agree again
		next = earlier(next, s.now.Add(clockAgain))
	}
	for i := range s.out.LeftOut {
		if noEventTells(s.out.LeftOut[i].Reason) {
			return earlier(next, s.now.Add(healthAgain))
		}
	}
	return next
}

// clockUncertain says that something was decided that depends on the time of day while the clocks differ,
// or on the age of a drift while the API server's time is not known.
func (s *subject) clockUncertain() bool {
	_, ok := window.ActsOnTime(s.skew)
	return !ok && !s.gathered.Input.Opening.Open || s.skew == window.SkewUnknown && len(s.gathered.Input.Drifts) > 0
}

// noEventTells says of a reason that no event may tell when it is over. An object is unknown
// when it could not be read, or was seen later than its Baseline; neither changes the Baseline. Nor do
// the labels and the field managers by which a GitOps tool is known.
func noEventTells(reason planner.Reason) bool {
	switch reason {
	case planner.ReasonUnhealthy, planner.ReasonNotAllowed, planner.ReasonUnknown, planner.ReasonRolloutUnderWay, planner.ReasonGitOps:
		return true
	default:
		return false
	}
}

// nextTooOld is when the next drift is too old to be remediated without a person. People
// are told of that drift.
func (s *subject) nextTooOld() time.Time {
	limit := s.policy.Spec.MaximumDriftAge
	if limit == nil {
		return time.Time{}
	}
	var next time.Time
	for i := range s.gathered.Input.Drifts {
		// A drift is older than the limit a whole second later.
		if at := s.gathered.Input.Drifts[i].FirstSeen.Add(limit.Duration + time.Second); at.After(s.now) {
			next = earlier(next, at)
		}
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (r *Reconciler) forget(policy string) {
	r.told.forget(policy)
	r.denials.forget(policy)
	r.lags.Forget(policy)
	r.Metrics.forget(policy)
}
