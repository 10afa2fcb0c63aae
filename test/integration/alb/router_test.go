// SPDX-License-Identifier: Apache-2.0

//go:build integration

package alb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	connector "github.com/plumbline-dev/plumbline/internal/connector/alb"
	"github.com/plumbline-dev/plumbline/internal/connector/restore"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/connectors"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
	"github.com/plumbline-dev/plumbline/test/faultproxy"
)

// checkWeights demands the weights of the stable variation and of the canary.
func (s *stand) checkWeights(want ...int32) {
	s.Helper()
	var got []int32
	for _, group := range s.readRule().Actions[0].ForwardConfig.TargetGroups {
		got = append(got, *group.Weight)
	}
	if d := cmp.Diff(want, got); d != "" {
		s.Errorf("the weights (-want +got):\n%s", d)
	}
}

// checkKnowledge demands what a router knows, and words of the reason why.
func (s *stand) checkKnowledge(router traffic.Router, want traffic.Knowledge, why string) {
	s.Helper()
	seen, err := router.Observe(s.Context())
	must(s, err)
	if text := fmt.Sprint(seen.OutOfSync); seen.Knowledge != want || !strings.Contains(text, why) {
		s.Errorf("the knowledge is %s (%s), want %s and %q", seen.Knowledge, text, want, why)
	}
}

// The tests share a moto, which takes seconds to start.
func TestTheRouterAtTheAPIOfAWS(t *testing.T) {
	a := newAccount(t)
	for name, route := range map[string]func(*stand) string{
		"a rule": func(s *stand) string { return s.rule }, "a listener": func(s *stand) string { return s.listener },
	} {
		t.Run("the router of "+name+" keeps the contract", func(t *testing.T) {
			routertest.Conform(t, routertest.Maker{Capabilities: connectors.AWSALB.Capabilities, Begin: func(t *testing.T) routertest.Stand {
				s := newStand(t, a)
				s.config.Route = route(s)
				return s
			}})
		})
	}
	for _, tc := range []struct {
		name string
		run  func(*stand)
	}{
		{"a write changes weights alone", testWeightsAlone},
		{"an API that throttles is left alone, and the split is unknown", testThrottled},
		{"a lost answer is found by the next read", testLostAnswer},
		{"a late answer is found by the next read", testLateAnswer},
		{"an API that is away leaves the split unknown", testAway},
		{"an edit by another writer is named, put back, and then left alone", testEdited},
		{"targets that go make the split unknown", testTargetsGone},
		{"a rule of the AWS Load Balancer Controller is refused", testOwned},
		{"a rule that goes is named, and holds no removal", testRuleGone},
		{"stickiness of target groups is refused", testSticky},
		{"counts come minutes later", testCounts},
	} {
		t.Run(tc.name, func(t *testing.T) {
			defer a.gate.way.Set(faultproxy.Fault{})
			defer a.gate.setThrottle(false)
			tc.run(newStand(t, a))
		})
	}
	used := slices.Compact(slices.Sorted(slices.Values(a.gate.listRequests())))
	want := []string{"DescribeListeners", "DescribeRules", "DescribeTags", "DescribeTargetHealth", "GetMetricData", "ModifyListener", "ModifyRule"}
	if d := cmp.Diff(want, used); d != "" {
		t.Errorf("the requests of the routers, for which the guide names the rights (-want +got):\n%s", d)
	}
}

func testWeightsAlone(s *stand) {
	before := s.readRule()
	router := s.newRouter()
	must(s, router.Apply(s.Context(), split(1, 2_500)))
	s.checkWeights(3, 1)
	s.checkKnowledge(router, traffic.Accepted, "")
	ignore := cmp.Options{
		cmpopts.IgnoreUnexported(types.Rule{}, types.Action{}, types.ForwardActionConfig{}, types.TargetGroupStickinessConfig{}, types.RuleCondition{}, types.PathPatternConditionConfig{}, types.TargetGroupTuple{}),
		cmpopts.IgnoreFields(types.TargetGroupTuple{}, "Weight"),
	}
	if d := cmp.Diff(before, s.readRule(), ignore); d != "" {
		s.Errorf("the rule beside its weights (-before +after):\n%s", d)
	}
}

func testThrottled(s *stand) {
	router := s.newRouter()
	must(s, router.Apply(s.Context(), split(1, 1_000)))
	s.passTime(connector.Every)
	s.gate.setThrottle(true)
	s.checkKnowledge(router, traffic.Unknown, "AWS throttles requests")
	made := len(s.gate.listRequests())
	var refused *connector.ThrottledError
	if err := router.Apply(s.Context(), split(2, 5_000)); !errors.As(err, &refused) {
		s.Fatalf("got %v, want the API left alone", err)
	}
	if len(s.gate.listRequests()) != made {
		s.Errorf("the router goes on asking: %v", s.gate.listRequests()[made:])
	}
	s.gate.setThrottle(false)
	s.now = refused.Until
	must(s, router.Apply(s.Context(), split(2, 5_000)))
	s.checkWeights(1, 1)
	s.checkKnowledge(router, traffic.Accepted, "")
}

func testLostAnswer(s *stand) {
	router := s.newRouter()
	must(s, router.Apply(s.Context(), split(1, 1_000)))
	s.passTime(time.Minute)
	// Reads before the write are answered: the fault begins with the write.
	lost := &losing{Balancers: s.config.Balancers, way: s.gate.way, fault: faultproxy.Fault{CutAtAnswer: true}}
	s.config.Balancers, s.config.State = lost, router.State()
	router = s.newRouter()
	if err := router.Apply(s.Context(), split(2, 5_000)); err == nil {
		s.Fatal("the answer was lost, and the write succeeds")
	}
	s.gate.way.Set(faultproxy.Fault{})
	s.checkWeights(1, 1)
	s.checkKnowledge(router, traffic.Accepted, "")
	must(s, router.Apply(s.Context(), split(2, 5_000)))
	if lost.writes != 1 {
		s.Errorf("the weights were written %d times", lost.writes)
	}
}

func testLateAnswer(s *stand) {
	late := &losing{Balancers: s.config.Balancers, way: s.gate.way, fault: faultproxy.Fault{Hold: true}}
	s.config.Balancers = late
	router := s.newRouter()
	ctx, cancel := context.WithTimeout(s.Context(), 500*time.Millisecond)
	defer cancel()
	if err := router.Apply(ctx, split(1, 2_500)); !errors.Is(err, context.DeadlineExceeded) {
		s.Fatalf("got %v, want the time over", err)
	}
	s.gate.way.Set(faultproxy.Fault{})
	must(s, router.Apply(s.Context(), split(1, 2_500)))
	s.checkWeights(3, 1)
	s.checkKnowledge(router, traffic.Accepted, "")
	if state := router.State(); len(state.Restored) > 0 {
		s.Errorf("a late answer counts as the work of another writer: %+v", state)
	}
}

// losing sets a fault of the way when the router writes.
type losing struct {
	connector.Balancers
	way    *faultproxy.Proxy
	fault  faultproxy.Fault
	writes int
}

func (l *losing) ModifyRule(ctx context.Context, in *elb.ModifyRuleInput, options ...func(*elb.Options)) (*elb.ModifyRuleOutput, error) {
	if l.writes++; l.writes == 1 {
		l.way.Set(l.fault)
	}
	return l.Balancers.ModifyRule(ctx, in, options...)
}

func testAway(s *stand) {
	router := s.newRouter()
	must(s, router.Apply(s.Context(), split(1, 1_000)))
	s.gate.way.Set(faultproxy.Fault{Refuse: true})
	s.passTime(connector.Every)
	if seen, err := router.Observe(s.Context()); err == nil {
		s.Errorf("the API is away, and observed is %+v", seen)
	}
	if err := router.Apply(s.Context(), split(2, 0)); err == nil {
		s.Error("the API is away, and a split is applied")
	}
	s.gate.way.Set(faultproxy.Fault{})
	must(s, router.Apply(s.Context(), split(2, 0)))
	s.checkWeights(1, 0)
}

func testEdited(s *stand) {
	router := s.newRouter()
	must(s, router.Apply(s.Context(), split(4, 2_500)))
	for range restore.Max {
		s.passTime(time.Minute)
		s.editWeights(50, 50)
		s.checkKnowledge(router, traffic.Contradicted, "RouteChangedByAnother")
		must(s, router.Apply(s.Context(), split(4, 2_500)))
		s.checkWeights(3, 1)
	}
	s.passTime(time.Minute)
	s.editWeights(50, 50)
	var held *restore.HeldError
	if err := router.Apply(s.Context(), split(4, 2_500)); !errors.As(err, &held) {
		s.Errorf("got %v, want the weights held", err)
	}
	must(s, router.Apply(s.Context(), split(5, 0))) // a rollback does not wait
	s.checkWeights(1, 0)
}

func testTargetsGone(s *stand) {
	router := s.newRouter()
	must(s, router.Apply(s.Context(), split(1, 2_500)))
	s.checkKnowledge(router, traffic.Accepted, "")
	_, err := s.client.DeregisterTargets(s.Context(), &elb.DeregisterTargetsInput{TargetGroupArn: aws.String(s.config.Groups["canary"]), Targets: []types.TargetDescription{target}})
	must(s, err)
	s.passTime(connector.Every)
	s.checkKnowledge(router, traffic.Unknown, "targetgroup/canary-")
}

func testOwned(s *stand) {
	_, err := s.client.AddTags(s.Context(), &elb.AddTagsInput{ResourceArns: []string{s.listener}, Tags: []types.Tag{{Key: aws.String("elbv2.k8s.aws/cluster"), Value: aws.String("prod")}}})
	must(s, err)
	s.checkRefusal(s.newRouter().Apply(s.Context(), split(1, 2_500)), connector.ReasonRouteOwned)
	s.checkWeights(1, 1)
}

func testRuleGone(s *stand) {
	router := s.newRouter()
	must(s, router.Apply(s.Context(), split(1, 2_500)))
	_, err := s.client.DeleteRule(s.Context(), &elb.DeleteRuleInput{RuleArn: aws.String(s.rule)})
	must(s, err)
	s.passTime(connector.Every)
	s.checkKnowledge(router, traffic.Unknown, "RouteNotFound")
	s.checkRefusal(router.Apply(s.Context(), split(2, 5_000)), connector.ReasonRouteNotFound)
	must(s, router.Remove(s.Context()))
}

func testSticky(s *stand) {
	sticky := s.forwardActions(1, 1)
	sticky[0].ForwardConfig.TargetGroupStickinessConfig = &types.TargetGroupStickinessConfig{Enabled: aws.Bool(true), DurationSeconds: aws.Int32(60)}
	_, err := s.client.ModifyRule(s.Context(), &elb.ModifyRuleInput{RuleArn: aws.String(s.rule), Actions: sticky})
	must(s, err)
	s.checkRefusal(s.newRouter().Apply(s.Context(), split(1, 2_500)), connector.ReasonStickiness)
}

// checkRefusal demands a refusal by a reason.
func (s *stand) checkRefusal(err error, want connector.Reason) {
	s.Helper()
	var refusal *connector.RefusalError
	if !errors.As(err, &refusal) || refusal.Reason != want {
		s.Errorf("got %v, want %s", err, want)
	}
}

func testCounts(s *stand) {
	router := s.newRouter()
	must(s, router.Apply(s.Context(), split(1, 2_500)))
	began := s.now
	s.putMetric("RequestCount", "canary", began, 40)
	s.putMetric("HTTPCode_Target_5XX_Count", "canary", began, 3)
	s.putMetric("RequestCount", "stable", began.Add(time.Minute), 120)
	for range 6 {
		_, err := router.Observe(s.Context())
		must(s, err)
		s.passTime(time.Minute)
	}
	m, err := router.Measure(s.Context(), nil)
	must(s, err)
	type told struct {
		Variation              string
		Minute, Over, Sequence uint64
		Failed                 uint64
	}
	var got []told
	for _, c := range m.Cells {
		got = append(got, told{c.Variation, uint64(c.Start.Sub(began) / time.Minute), c.Over, c.Sequence, c.Failed})
	}
	if d := cmp.Diff([]told{{"canary", 0, 40, 1, 3}, {"stable", 1, 120, 1, 0}}, got); d != "" {
		s.Errorf("the counts (-want +got):\n%s", d)
	}
	if again, err := router.Measure(s.Context(), m.Next); err != nil || len(again.Cells) > 0 {
		s.Errorf("told again is %+v (%v)", again.Cells, err)
	}
}

// putMetric puts a metric of a target group into a minute, as a balancer does.
func (s *stand) putMetric(metric, variation string, at time.Time, value int) {
	s.Helper()
	group := s.config.Groups[variation]
	_, err := s.Ask(s.Context(), "monitoring", url.Values{
		"Action": {"PutMetricData"}, "Version": {"2010-08-01"}, "Namespace": {"AWS/ApplicationELB"},
		"MetricData.member.1.MetricName": {metric}, "MetricData.member.1.Value": {fmt.Sprint(value)}, "MetricData.member.1.Timestamp": {at.Format(time.RFC3339)},
		"MetricData.member.1.Dimensions.member.1.Name": {"LoadBalancer"}, "MetricData.member.1.Dimensions.member.1.Value": {balancerOf(s.listener)},
		"MetricData.member.1.Dimensions.member.2.Name": {"TargetGroup"}, "MetricData.member.1.Dimensions.member.2.Value": {group[strings.LastIndex(group, ":")+1:]},
	})
	must(s, err)
}

// balancerOf is the value of the dimension LoadBalancer, by the ARN of a listener.
func balancerOf(listener string) string {
	_, name, _ := strings.Cut(listener, ":listener/")
	return name[:strings.LastIndex(name, "/")]
}
