// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

// brakesRead are the answers of all that may hold the plan back, read beside each other.
type brakesRead struct {
	policy      *reading[*v1alpha1.RemediationPolicy]
	halt        *reading[*v1alpha1.LedgerHalt]
	ledgers     map[string]*v1alpha1.RemediationLedger
	guards      *reading[GuardView]
	holders     *reading[[]string]
	budgets     *reading[budgets]
	environment *reading[*v1alpha1.Environment]
}

// readBrakes reads all that may hold the plan back, from the API server alone. The reads do
// not depend on each other, and a step has to wait for the slowest of them alone.
func (r *run) readBrakes(ctx context.Context) brakesRead {
	var group sync.WaitGroup
	var read brakesRead
	read.policy = begin(&group, func() (*v1alpha1.RemediationPolicy, error) { return r.readPolicy(ctx, r.Client) })
	read.halt = begin(&group, func() (halt *v1alpha1.LedgerHalt, err error) {
		halt, read.ledgers, err = r.readHalts(ctx, r.Client)
		return halt, err
	})
	read.guards = begin(&group, func() (GuardView, error) { return r.Guards.Read(ctx, r.Client) })
	read.holders = begin(&group, func() ([]string, error) { return r.readHolders(ctx) })
	read.budgets = begin(&group, func() (budgets, error) { return r.readBudgets(ctx) })
	read.environment = begin(&group, func() (*v1alpha1.Environment, error) { return r.readEnvironment(ctx) })
	group.Wait()
	return read
}

// look reads what may hold the plan back. What could not be read makes all of it unknown, and
// then nothing begins.
func (r *run) look(ctx context.Context) protocol.Brakes {
	unknown := protocol.Brakes{}
	read := r.readBrakes(ctx)
	if read.policy.err != nil {
		return unknown
	}
	policy := read.policy.value
	if policy == nil {
		return protocol.Brakes{Known: true, Halted: "its policy is gone"}
	}
	r.policy = policy
	if halted, by := haltedBy(policy); halted != "" {
		return protocol.Brakes{Known: true, Halted: halted, HaltedBy: by}
	}
	if !ownRight(&r.plan.Spec.Plan, &policy.Spec) {
		return protocol.Brakes{Known: true, Halted: "it acts with other permissions than its policy has"}
	}
	if read.halt.err != nil {
		return unknown
	}
	if halt := read.halt.value; halt != nil {
		return protocol.Brakes{Known: true, Halted: halt.Reason, HaltedBy: halt.RequestedBy}
	}
	r.ledgers = read.ledgers
	if read.guards.err != nil {
		return unknown
	}
	r.guards = read.guards.value
	if astray := r.astray(); astray != "" {
		return protocol.Brakes{Known: true, Halted: astray}
	}
	brakes := protocol.Brakes{Known: true, MaximumDriftAge: r.maximumDriftAge(), MaximumTargets: r.maximumTargets()}
	if digest := planner.Digest(&policy.Spec); digest != r.plan.Spec.Plan.Policy.Digest {
		brakes.Superseded = "its policy has changed"
	}
	if read.budgets.err != nil {
		return unknown
	}
	r.budgets = read.budgets.value
	brakes.NoDisruptions = r.budgets.cut || len(r.budgets.exhausted) > 0
	if !r.closedByGuards(&brakes) && !r.closedByRollout(read.holders, &brakes) && !r.closedByEnvironment(read.environment, &brakes) && !r.closedByHealth(&brakes) {
		r.closedByTime(&brakes)
	}
	return brakes
}

// maximumDriftAge returns the bound of the policy for a plan that no person asked for, and
// that waits for no person; zero without a bound.
func (r *run) maximumDriftAge() time.Duration {
	oldest := r.policy.Spec.MaximumDriftAge
	if oldest == nil || !r.byItself() {
		return 0
	}
	return oldest.Duration
}

// maximumTargets returns how many targets one operation may have. Without a count of the
// objects that the policy selects, the share of the policy is not known, and the number alone
// counts.
func (r *run) maximumTargets() int {
	safety, status := &r.policy.Spec.Safety, &r.policy.Status
	if status.Targets.Selected == 0 || status.Digest != planner.Digest(&r.policy.Spec) {
		return planner.Allowed(safety, math.MaxInt32)
	}
	return planner.Allowed(safety, int(status.Targets.Selected))
}

// astray says that the plan is none of its policy's Environment: the policy, or the
// namespace, went over to another one, or somebody wrote the plan by hand. The
// limits of one Environment say nothing about another one's objects.
func (r *run) astray() string {
	of, policy := r.plan.Spec.Plan.EnvironmentName, r.policy.Spec.EnvironmentName
	if of != policy {
		return fmt.Sprintf("it is for Environment %s, and its policy for %s", of, policy)
	}
	if own := r.guards.Environment(r.plan.Namespace); own != of {
		return fmt.Sprintf("its namespace belongs to Environment %q, and its policy is for %s", own, of)
	}
	return ""
}

// readPolicy reads the plan's policy; nil when it is gone, or is another one.
func (r *run) readPolicy(ctx context.Context, from client.Reader) (*v1alpha1.RemediationPolicy, error) {
	of := r.plan.Spec.Plan.Policy
	policy := &v1alpha1.RemediationPolicy{}
	err := from.Get(ctx, types.NamespacedName{Name: of.Name}, policy)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // absent is an answer
	case err != nil:
		return nil, fmt.Errorf("reading policy %s: %w", of.Name, err)
	case string(policy.UID) != of.UID || policy.DeletionTimestamp != nil:
		return nil, nil //nolint:nilnil // absent is an answer
	}
	return policy, nil
}

// haltedBy says that a policy lets nothing go on. Who takes its activation back
// means that it writes nothing more.
func haltedBy(policy *v1alpha1.RemediationPolicy) (why, by string) {
	switch policy.Spec.Mode {
	case v1alpha1.PolicyModeActive:
		return "", ""
	case v1alpha1.PolicyModeHalted:
		return "its policy is halted", policy.Spec.RequestedBy
	case v1alpha1.PolicyModeObserveOnly:
		return "its policy is no longer active", policy.Spec.RequestedBy
	}
	return "its policy has a mode that this version does not know", ""
}

// ownRight says that a plan which nobody asked for acts with the right of its policy
// as it was when it was made: of plans the API server cannot know that. A policy
// that has changed since supersedes the plan, and ends the steps that have not begun.
func ownRight(plan *v1alpha1.PlannedRemediation, policy *v1alpha1.RemediationPolicySpec) bool {
	principal := planner.PrincipalOf(policy)
	return plan.InitiatedBy != planner.InitiatedByItself || plan.Policy.Digest != planner.Digest(policy) ||
		plan.Requester == principal.User && slices.Equal(plan.RequesterGroups, principal.Groups)
}

func (r *run) closedByGuards(b *protocol.Brakes) bool {
	for i := range r.plan.Status.Steps {
		if settled(&r.plan.Status.Steps[i]) {
			continue
		}
		if frozen := r.guards.Frozen(r.plan.Namespace, r.target(int32(i))); frozen != "" { //nolint:gosec // at most ten
			b.Closed = frozen + " sees a mass drift: one cause is assumed, and a person has to look"
			return true
		}
	}
	return false
}

// holderAgain is when a plan is looked at again that waits for the end of a run.
const holderAgain = 10 * time.Second

// readHolders reads which runs of releases have targets of the plan as variations.
func (r *run) readHolders(ctx context.Context) ([]string, error) {
	if r.Rollouts == nil {
		return nil, nil
	}
	return r.Rollouts.Holders(ctx, r.Client, r.plan.Namespace, r.plan.Spec.Plan.Targets) //nolint:wrapcheck // the adapter names the operation
}

// closedByRollout closes while a run has a target as a variation that the plan is not done with.
func (r *run) closedByRollout(read *reading[[]string], b *protocol.Brakes) bool {
	if read.err != nil {
		b.Known = false
		return true
	}
	holders := read.value
	for i := range r.plan.Status.Steps {
		step := &r.plan.Status.Steps[i]
		if settled(step) || int(step.Index) >= len(holders) || holders[step.Index] == "" {
			continue
		}
		b.Closed = string(planner.ReasonRolloutUnderWay) + ": " + planner.RolloutUnderWay(holders[step.Index])
		b.Until = r.Time.Now().Add(holderAgain)
		return true
	}
	return false
}

// settled says that a step needs nothing more.
func settled(step *v1alpha1.PlanStep) bool { return step.Settled == v1alpha1.Enabled }

// closedByEnvironment closes while the plan has no Environment, whose caps count.
func (r *run) closedByEnvironment(read *reading[*v1alpha1.Environment], b *protocol.Brakes) bool {
	switch {
	case apierrors.IsNotFound(read.err):
		b.Closed = fmt.Sprintf("its Environment %s is gone", r.plan.Spec.Plan.EnvironmentName)
	case read.err != nil:
		b.Known = false
	default:
		r.environment = read.value
	}
	return read.err != nil
}

// readEnvironment reads the Environment of the plan.
func (r *run) readEnvironment(ctx context.Context) (*v1alpha1.Environment, error) {
	environment := &v1alpha1.Environment{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: r.plan.Spec.Plan.EnvironmentName}, environment); err != nil {
		return nil, fmt.Errorf("reading Environment %s: %w", r.plan.Spec.Plan.EnvironmentName, err)
	}
	return environment, nil
}

// closedByHealth closes while too few of the other objects of the policy are healthy. The
// assessor counts them; a status of an earlier policy is no answer.
func (r *run) closedByHealth(b *protocol.Brakes) bool {
	status := &r.policy.Status
	if status.Digest != planner.Digest(&r.policy.Spec) {
		return false
	}
	ill := planner.Health(&r.policy.Spec.Safety, int(status.Targets.Healthy), int(status.Targets.Unhealthy))
	if ill.Reason == "" {
		return false
	}
	b.Closed, b.Until = ill.Message, r.Time.Now().Add(10*time.Second)
	return true
}

// askStoreAgain is when a store that is not ready is asked again.
const askStoreAgain = 10 * time.Second

// askStore says whether what is about to begin could be recorded.
func (r *run) askStore(ctx context.Context) protocol.Store {
	if err := r.Evidence.Ready(ctx); err != nil {
		return protocol.Store{Why: "evidence cannot be written: " + err.Error(), Until: r.Time.Now().Add(askStoreAgain)}
	}
	return protocol.Store{Ready: true}
}

func (r *run) closedByTime(b *protocol.Brakes) {
	schedule, errs := planner.Schedule(&r.policy.Spec.Schedule, r.Zones)
	if len(errs) > 0 {
		b.Closed = errs.ToAggregate().Error()
		return
	}
	state := schedule.Decide(r.Time.Now(), r.Time.Skew())
	b.UrgentPasses = r.policy.Spec.Schedule.Urgent == v1alpha1.Allowed
	if state.Open {
		b.ClosesAt = state.Until
		return
	}
	b.Closed, b.Until = state.Why, state.Next
	b.OutsideSchedule = len(state.Blocks) > 0 && state.Blocks[0].Reason != window.ReasonClockSkew
}

// defaults of RemediationHealth, for a policy that was stored before the schema
// had them.
const (
	defaultStabilization = 10 * time.Second
	defaultTimeout       = 10 * time.Minute
)

// health returns the settings of the policy for health, or nil when the policy could not
// be read.
func (r *run) health() *protocol.Health {
	if r.policy == nil {
		return nil
	}
	h := &protocol.Health{Stabilization: defaultStabilization, Timeout: defaultTimeout}
	if d := r.policy.Spec.Health.Stabilization; d != nil {
		h.Stabilization = d.Duration
	}
	if d := r.policy.Spec.Health.Timeout; d != nil {
		h.Timeout = d.Duration
	}
	return h
}
