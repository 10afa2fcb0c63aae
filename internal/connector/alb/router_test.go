// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/google/go-cmp/cmp"
	k8s "k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/connector/restore"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/connectors"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

// clouds give each release a router at an account of its own, whose balancer needs no time.
type clouds struct {
	*testing.T
	routers map[k8s.NamespacedName]*Router
}

// Router implements routertest.Stand.
func (c clouds) Router(release k8s.NamespacedName) traffic.Router {
	if c.routers[release] == nil {
		w := newWorld(c.T)
		w.config.Settle = 0
		w.replaceLeader()
		c.routers[release] = w.router
	}
	return c.routers[release]
}

func TestTheRouterKeepsTheContract(t *testing.T) {
	routertest.Conform(t, routertest.Maker{Capabilities: connectors.AWSALB.Capabilities, Begin: func(t *testing.T) routertest.Stand {
		return clouds{t, map[k8s.NamespacedName]*Router{}}
	}})
}

// checkKnowledge demands what the router knows, and words of the reason why.
func (w *world) checkKnowledge(want traffic.Knowledge, why string) {
	w.Helper()
	seen := w.observeSplit()
	var reasons []string
	for _, late := range seen.OutOfSync {
		reasons = append(reasons, late.Name+": "+late.Why)
	}
	if text := strings.Join(reasons, "; "); seen.Knowledge != want || !strings.Contains(text, why) || why == "" && text != "" {
		w.Errorf("the knowledge is %s (%s), want %s and %q", seen.Knowledge, text, want, why)
	}
}

// checkWeights demands the weights of the canary and of the stable variation.
func (w *world) checkWeights(canary, stable int32) {
	w.Helper()
	if d := cmp.Diff([2]int32{canary, stable}, w.readWeights()); d != "" {
		w.Errorf("the weights (-want +got):\n%s", d)
	}
}

func TestASplitCountsAMinuteAfterTheAPIShowsIt(t *testing.T) {
	w := newWorld(t)
	w.applySplit(1, 1_000)
	w.checkWeights(1, 9)
	for _, step := range []struct {
		after     time.Duration
		effective bool
	}{{0, false}, {30 * time.Second, false}, {29 * time.Second, false}, {time.Second, true}} {
		w.passTime(step.after)
		seen := w.observeSplit()
		if seen.Knowledge != traffic.Accepted || seen.IsEffective(1, w.now) != step.effective {
			t.Errorf("after %s: observed is %+v", w.now.Sub(began), seen)
		}
	}
	want := map[string]float64{groupARN("stable"): 9_000, groupARN("canary"): 1_000}
	if d := cmp.Diff(want, w.router.Shares()); d != "" {
		t.Errorf("the shares (-want +got):\n%s", d)
	}
}

func TestATargetGroupWithoutHealthyTargetsIsNamed(t *testing.T) {
	w := newWorld(t)
	w.setHealth("canary", types.TargetHealthStateEnumInitial, types.TargetHealthStateEnumUnhealthy, types.TargetHealthStateEnumUnhealthy)
	w.applySplit(1, 1_000)
	w.checkKnowledge(traffic.Unknown, "targetgroup/canary/73e2d6bc24d8a067: no target is healthy (initial: 1, unhealthy: 2)")
	w.setHealth("canary")
	w.passTime(Every)
	w.checkKnowledge(traffic.Unknown, "the target group has no targets")
	w.setHealth("canary", types.TargetHealthStateEnumUnhealthy, types.TargetHealthStateEnumHealthy)
	w.passTime(Every)
	w.checkKnowledge(traffic.Accepted, "")
	if seen := w.observeSplit(); !seen.SettledAt.Equal(w.now.Add(Settle)) {
		t.Errorf("the settle time ends at %s, and targets are healthy since %s", seen.SettledAt, w.now)
	}
}

func TestATargetGroupWithoutRequestsNeedsNoTargets(t *testing.T) {
	w := newWorld(t)
	w.setHealth("canary")
	w.applySplit(1, 0)
	w.checkKnowledge(traffic.Accepted, "")
	w.checkWeights(0, 1)
}

func TestALostAnswerIsFoundByTheNextRead(t *testing.T) {
	w := newWorld(t)
	w.applySplit(1, 1_000)
	w.passTime(time.Minute)
	w.lose = true
	if err := w.router.Apply(t.Context(), splitOf(2, 5_000)); !errors.Is(err, errLost) {
		t.Fatalf("got %v, want the answer lost", err)
	}
	w.checkWeights(1, 1)
	w.lose = false
	w.checkKnowledge(traffic.Accepted, "")
	if seen := w.observeSplit(); seen.Sequence != 2 {
		t.Errorf("observed is %+v, want sequence 2", seen)
	}
	before := len(w.calls)
	w.applySplit(2, 5_000)
	if slices.Contains(w.calls[before:], "ModifyRule") {
		t.Error("the weights are written again")
	}
}

func TestAWriteThatNeverArrivedIsNoForeignEdit(t *testing.T) {
	w := newWorld(t)
	w.applySplit(1, 1_000)
	w.passTime(time.Minute)
	for range restore.Max + 2 {
		w.refuseWrites = errLost
		if err := w.router.Apply(t.Context(), splitOf(2, 5_000)); !errors.Is(err, errLost) {
			t.Fatalf("got %v, want the connection ended", err)
		}
		w.refuseWrites = nil
		w.passTime(time.Minute)
	}
	w.applySplit(2, 5_000)
	w.checkWeights(1, 1)
	if state := w.router.State(); len(state.Restored) > 0 || !state.Confirmed {
		t.Errorf("the state is %+v, want no restore", state)
	}
}

func TestAnEditByAnotherWriterIsNamedAndThenLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.applySplit(4, 2_500)
	for range restore.Max {
		w.passTime(time.Minute)
		w.setWeights(50, 50)
		w.checkKnowledge(traffic.Contradicted, "RouteChangedByAnother")
		w.applySplit(4, 2_500)
		w.checkWeights(1, 3)
	}
	w.passTime(time.Minute)
	w.setWeights(50, 50)
	for range 2 { // the leader, and the next one
		var held *restore.HeldError
		if err := w.router.Apply(t.Context(), splitOf(4, 2_500)); !errors.As(err, &held) || !strings.Contains(held.Error(), "listener-rule app/edge/") {
			t.Errorf("got %v, want the weights held", err)
		}
		w.checkWeights(50, 50)
		w.replaceLeader()
	}
	w.applySplit(5, 0) // a rollback does not wait
	w.checkWeights(0, 1)
	w.passTime(restore.Window)
	w.setWeights(50, 50)
	w.applySplit(5, 0)
	w.checkWeights(0, 1)
}

func TestTheAPIMayAnswerWithTheWeightsOfBeforeForAWhile(t *testing.T) {
	w := newWorld(t)
	old := w.rule
	w.applySplit(1, 1_000)
	w.stale = &old
	w.checkKnowledge(traffic.Unknown, "the API does not show the weights yet")
	w.applySplit(1, 1_000)
	if state := w.router.State(); len(state.Restored) > 0 {
		t.Errorf("a late answer counts as the work of another writer: %+v", state)
	}
	w.stale = nil
	w.passTime(Every)
	w.checkKnowledge(traffic.Accepted, "")
}

func TestAnAPIThatThrottlesIsLeftAloneForAWhile(t *testing.T) {
	w := newWorld(t)
	w.applySplit(1, 1_000)
	w.passTime(time.Minute)
	w.refuse = throttled
	before := len(w.calls)
	for i, wait := range []time.Duration{750 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second, 6 * time.Second} {
		w.checkKnowledge(traffic.Unknown, "AWS throttles requests")
		w.passTime(wait - time.Millisecond)
		w.checkKnowledge(traffic.Unknown, "AWS throttles requests")
		var refused *ThrottledError
		if err := w.router.Apply(t.Context(), splitOf(2, 5_000)); !errors.As(err, &refused) || !refused.Until.Equal(w.now.Add(time.Millisecond)) {
			t.Errorf("got %v, want the API left alone for a millisecond more", err)
		}
		if made := len(w.calls) - before; made != i+1 {
			t.Fatalf("%d requests were made, want %d", made, i+1)
		}
		w.passTime(time.Millisecond)
	}
	w.refuse = nil
	w.applySplit(2, 5_000)
	w.checkWeights(1, 1)
	w.checkKnowledge(traffic.Accepted, "")
}

func TestTheNextLeaderTakesNoLowerSequence(t *testing.T) {
	w := newWorld(t)
	w.applySplit(7, 1_000)
	w.replaceLeader()
	var later *traffic.LaterError
	if err := w.router.Apply(t.Context(), splitOf(6, 9_000)); !errors.As(err, &later) || later.Sequence != 7 {
		t.Errorf("got %v, want a LaterError of 7", err)
	}
	w.checkWeights(1, 9)
	w.applySplit(7, 1_000)
	w.checkKnowledge(traffic.Accepted, "")
}

func TestARemovalLeavesAllRequestsToTheStableVariation(t *testing.T) {
	w := newWorld(t)
	w.applySplit(1, 7_000)
	w.replaceLeader()
	for _, step := range []time.Duration{0, 30 * time.Second, 29 * time.Second} {
		w.passTime(step)
		if err := w.router.Remove(t.Context()); err == nil || !strings.Contains(err.Error(), "may send requests by the former weights until 2030-01-01T12:01:00Z") {
			t.Errorf("a removal that the balancer may not have: %v", err)
		}
	}
	w.checkWeights(0, 1)
	w.passTime(time.Second)
	if err := w.router.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(State{}, w.router.State()); d != "" {
		t.Errorf("the state after a removal (-want +got):\n%s", d)
	}
}

func TestARouteThatGoesMidRunIsNamed(t *testing.T) {
	w := newWorld(t)
	w.applySplit(1, 1_000)
	w.passTime(time.Minute)
	w.refuse = &types.RuleNotFoundException{}
	w.checkKnowledge(traffic.Unknown, "RouteNotFound")
	checkReason(t, w.router.Apply(t.Context(), splitOf(2, 2_000)), ReasonRouteNotFound)
	if err := w.router.Remove(t.Context()); err != nil {
		t.Errorf("the removal from a route that is gone: %v", err)
	}
}

func TestTargetGroupsThatChangeMidRunAreNamedAndLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.applySplit(1, 1_000)
	w.passTime(time.Minute)
	w.setWeights(50, 50)
	w.rule.Actions[0].ForwardConfig.TargetGroups[0].TargetGroupArn = aws.String(groupARN("next"))
	w.checkKnowledge(traffic.Unknown, "TargetGroupsDiffer")
	checkReason(t, w.router.Apply(t.Context(), splitOf(2, 2_000)), ReasonTargetGroupsDiffer)
	w.checkWeights(50, 50)
	checkReason(t, w.router.Remove(t.Context()), ReasonTargetGroupsDiffer)
}

func TestARouteOfTheControllerIsNeverWritten(t *testing.T) {
	for name, canary := range map[string]traffic.Weight{"with other weights": 1_000, "with the weights of the split": 5_000} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.tags = []types.Tag{{Key: aws.String("elbv2.k8s.aws/cluster"), Value: aws.String("prod")}}
			err := w.router.Apply(t.Context(), splitOf(1, canary))
			checkReason(t, err, ReasonRouteOwned)
			if err == nil || !strings.Contains(err.Error(), "elbv2.k8s.aws/cluster=prod") || !strings.Contains(err.Error(), "GatewayAPI") {
				t.Errorf("the refusal is %v, want the tag and the way out", err)
			}
			w.checkWeights(1, 1)
			w.checkKnowledge(traffic.Unknown, "")
		})
	}
}

func TestTheDefaultActionOfAListenerCarriesASplit(t *testing.T) {
	w := newWorld(t)
	w.config.Route = listenerARN
	w.replaceLeader()
	w.applySplit(1, 1_000)
	w.checkKnowledge(traffic.Accepted, "")
	groups := w.listener.DefaultActions[0].ForwardConfig.TargetGroups
	if *groups[0].Weight != 1 || *groups[1].Weight != 9 || slices.Contains(w.calls, "ModifyRule") {
		t.Errorf("the listener has the weights %d and %d, by the requests %v", *groups[0].Weight, *groups[1].Weight, w.calls)
	}
}

func TestAChangeBetweenReadAndWriteIsTold(t *testing.T) {
	w := newWorld(t)
	before := w.rule
	before.Priority = aws.String("99")
	w.stale = &before
	if err := w.router.Apply(t.Context(), splitOf(1, 1_000)); err == nil || !strings.Contains(err.Error(), "another writer changed it meanwhile") {
		t.Errorf("got %v, want the change told", err)
	}
}

func TestALookEachSecondCostsFewRequests(t *testing.T) {
	w := newWorld(t)
	w.applySplit(1, 1_000)
	before := len(w.calls)
	for range 60 {
		w.passTime(time.Second)
		w.applySplit(1, 1_000)
		w.observeSplit()
	}
	if made := len(w.calls) - before; made > 6*3 {
		t.Errorf("a minute of looks makes %d requests, want at most %d", made, 6*3)
	}
}
