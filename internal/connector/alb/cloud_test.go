// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/smithy-go"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

var began = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// splitOf gives the canary a share of requests that are drawn.
func splitOf(sequence uint64, canary traffic.Weight) traffic.Split {
	split := routertest.Split(sequence, canary)
	split.Key = traffic.Key{}
	return split
}

// cloud is an account of AWS in memory, with a rule, a listener and two target groups.
type cloud struct {
	rule     types.Rule
	listener types.Listener
	tags     []types.Tag
	health   map[string][]types.TargetHealthDescription
	data     *cloudwatch.GetMetricDataOutput
	asked    []*cloudwatch.GetMetricDataInput
	// calls are the requests in order. refuse is the answer to each request, refuseWrites the one to each write, and lose
	// drops the answers to writes that are done.
	calls                []string
	refuse, refuseWrites error
	lose                 bool
	// stale is an answer from before the last write; nil when reads have the present rule.
	stale *types.Rule
}

var (
	_ Balancers = (*cloud)(nil)
	_ Metrics   = (*cloud)(nil)
)

var (
	errLost   = errors.New("the connection ended before the answer")
	throttled = &smithy.GenericAPIError{Code: "Throttling", Message: "Rate exceeded"}
)

func newCloud() *cloud {
	forward := func() []types.Action {
		return []types.Action{{Type: types.ActionTypeEnumForward, Order: aws.Int32(1), ForwardConfig: &types.ForwardActionConfig{
			TargetGroupStickinessConfig: &types.TargetGroupStickinessConfig{Enabled: aws.Bool(false)},
			TargetGroups: []types.TargetGroupTuple{
				{TargetGroupArn: aws.String(groupARN("canary")), Weight: aws.Int32(1)}, {TargetGroupArn: aws.String(groupARN("stable")), Weight: aws.Int32(1)},
			},
		}}}
	}
	c := &cloud{
		rule:     types.Rule{RuleArn: aws.String(ruleARN), Priority: aws.String("10"), IsDefault: aws.Bool(false), Actions: forward()},
		listener: types.Listener{ListenerArn: aws.String(listenerARN), LoadBalancerArn: aws.String(balancerARN), Port: aws.Int32(443), DefaultActions: forward()},
		health:   map[string][]types.TargetHealthDescription{},
		data:     &cloudwatch.GetMetricDataOutput{},
	}
	c.setHealth("stable", types.TargetHealthStateEnumHealthy)
	c.setHealth("canary", types.TargetHealthStateEnumHealthy)
	return c
}

func (c *cloud) setHealth(variation string, states ...types.TargetHealthStateEnum) {
	c.health[groupARN(variation)] = nil
	for _, state := range states {
		c.health[groupARN(variation)] = append(c.health[groupARN(variation)], types.TargetHealthDescription{TargetHealth: &types.TargetHealth{State: state}})
	}
}

// setWeights changes the weights of the canary and of the stable variation past the router.
func (c *cloud) setWeights(canary, stable int32) {
	groups := slices.Clone(c.rule.Actions[0].ForwardConfig.TargetGroups)
	groups[0].Weight, groups[1].Weight = &canary, &stable
	action := c.rule.Actions[0]
	action.ForwardConfig = &types.ForwardActionConfig{TargetGroupStickinessConfig: action.ForwardConfig.TargetGroupStickinessConfig, TargetGroups: groups}
	c.rule.Actions = []types.Action{action}
}

// readWeights returns those of the canary and of the stable variation.
func (c *cloud) readWeights() [2]int32 {
	groups := c.rule.Actions[0].ForwardConfig.TargetGroups
	return [2]int32{*groups[0].Weight, *groups[1].Weight}
}

func (c *cloud) noteCall(call string) error {
	c.calls = append(c.calls, call)
	return c.refuse
}

func (c *cloud) DescribeRules(context.Context, *elb.DescribeRulesInput, ...func(*elb.Options)) (*elb.DescribeRulesOutput, error) {
	if c.stale != nil {
		return &elb.DescribeRulesOutput{Rules: []types.Rule{*c.stale}}, c.noteCall("DescribeRules")
	}
	return &elb.DescribeRulesOutput{Rules: []types.Rule{c.rule}}, c.noteCall("DescribeRules")
}

func (c *cloud) DescribeListeners(context.Context, *elb.DescribeListenersInput, ...func(*elb.Options)) (*elb.DescribeListenersOutput, error) {
	return &elb.DescribeListenersOutput{Listeners: []types.Listener{c.listener}}, c.noteCall("DescribeListeners")
}

func (c *cloud) DescribeTargetHealth(_ context.Context, in *elb.DescribeTargetHealthInput, _ ...func(*elb.Options)) (*elb.DescribeTargetHealthOutput, error) {
	return &elb.DescribeTargetHealthOutput{TargetHealthDescriptions: c.health[*in.TargetGroupArn]}, c.noteCall("DescribeTargetHealth")
}

func (c *cloud) DescribeTags(context.Context, *elb.DescribeTagsInput, ...func(*elb.Options)) (*elb.DescribeTagsOutput, error) {
	return &elb.DescribeTagsOutput{TagDescriptions: []types.TagDescription{{Tags: c.tags}}}, c.noteCall("DescribeTags")
}

func (c *cloud) ModifyRule(_ context.Context, in *elb.ModifyRuleInput, _ ...func(*elb.Options)) (*elb.ModifyRuleOutput, error) {
	if err := cmp.Or(c.noteCall("ModifyRule"), c.refuseWrites); err != nil {
		return nil, err
	}
	c.rule.Actions = in.Actions
	if c.lose {
		return nil, errLost
	}
	return &elb.ModifyRuleOutput{Rules: []types.Rule{c.rule}}, nil
}

func (c *cloud) ModifyListener(_ context.Context, in *elb.ModifyListenerInput, _ ...func(*elb.Options)) (*elb.ModifyListenerOutput, error) {
	if err := c.noteCall("ModifyListener"); err != nil {
		return nil, err
	}
	c.listener.DefaultActions = in.DefaultActions
	return &elb.ModifyListenerOutput{Listeners: []types.Listener{c.listener}}, nil
}

func (c *cloud) GetMetricData(_ context.Context, in *cloudwatch.GetMetricDataInput, _ ...func(*cloudwatch.Options)) (*cloudwatch.GetMetricDataOutput, error) {
	copied := *in
	c.asked = append(c.asked, &copied)
	return c.data, c.noteCall("GetMetricData")
}

// world is a router at a cloud, with a clock of its own.
type world struct {
	*testing.T
	*cloud
	router *Router
	config Config
	now    time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, cloud: newCloud(), now: began}
	w.config = Config{
		Balancers: w.cloud, Metrics: w.cloud, Region: region, Account: account, Route: ruleARN, Groups: groupsOf("stable", "canary"),
		Settle: Settle, Now: func() time.Time { return w.now }, Random: func() float64 { return 0.5 },
	}
	w.replaceLeader()
	return w
}

// replaceLeader has the next leader go on with the state that was stored.
func (w *world) replaceLeader() {
	w.Helper()
	if w.router != nil {
		w.config.State = w.router.State()
	}
	router, err := New(w.config)
	if err != nil {
		w.Fatal(err)
	}
	w.router = router
}

func (w *world) applySplit(sequence uint64, canary traffic.Weight) {
	w.Helper()
	if err := w.router.Apply(w.Context(), splitOf(sequence, canary)); err != nil {
		w.Fatal(err)
	}
}

func (w *world) observeSplit() traffic.Observation {
	w.Helper()
	seen, err := w.router.Observe(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return seen
}

// passTime lets time go by without a look.
func (w *world) passTime(d time.Duration) { w.now = w.now.Add(d) }
