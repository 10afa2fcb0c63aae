// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
)

// Balancers are the requests to Elastic Load Balancing. The policy of rights in the guide permits these, and no others.
type Balancers interface {
	DescribeRules(context.Context, *elb.DescribeRulesInput, ...func(*elb.Options)) (*elb.DescribeRulesOutput, error)
	DescribeListeners(context.Context, *elb.DescribeListenersInput, ...func(*elb.Options)) (*elb.DescribeListenersOutput, error)
	DescribeTargetHealth(context.Context, *elb.DescribeTargetHealthInput, ...func(*elb.Options)) (*elb.DescribeTargetHealthOutput, error)
	DescribeTags(context.Context, *elb.DescribeTagsInput, ...func(*elb.Options)) (*elb.DescribeTagsOutput, error)
	ModifyRule(context.Context, *elb.ModifyRuleInput, ...func(*elb.Options)) (*elb.ModifyRuleOutput, error)
	ModifyListener(context.Context, *elb.ModifyListenerInput, ...func(*elb.Options)) (*elb.ModifyListenerOutput, error)
}

// Metrics are the requests to CloudWatch.
type Metrics interface {
	GetMetricData(context.Context, *cloudwatch.GetMetricDataInput, ...func(*cloudwatch.Options)) (*cloudwatch.GetMetricDataOutput, error)
}

// Connect returns clients of a region with the default credentials of the SDK. The SDK makes each request once, because
// the router has pauses of its own.
func Connect(ctx context.Context, region string, options ...func(*config.LoadOptions) error) (Balancers, Metrics, error) {
	options = append([]func(*config.LoadOptions) error{config.WithRegion(region), config.WithRetryMaxAttempts(1)}, options...)
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the configuration of AWS: %w", err)
	}
	return elb.NewFromConfig(loaded), cloudwatch.NewFromConfig(loaded), nil
}

// readRoute reads the route from the API. It returns a [RefusalError] if the route does not exist.
func (r *Router) readRoute(ctx context.Context) (*Route, error) {
	if r.route.kind == kindRule {
		return r.readRule(ctx)
	}
	return r.readListener(ctx)
}

func (r *Router) readRule(ctx context.Context) (*Route, error) {
	out, err := callAPI(ctx, r, &r.balancersPause, r.Balancers.DescribeRules, &elb.DescribeRulesInput{RuleArns: []string{r.route.ARN.String()}})
	var missing *types.RuleNotFoundException
	switch {
	case errors.As(err, &missing) || err == nil && len(out.Rules) != 1:
		return nil, refuse(ReasonRouteNotFound, "%s does not exist", r.route)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", r.route, err)
	}
	return routeOfRule(r.route.String(), out.Rules[0]), nil
}

func (r *Router) readListener(ctx context.Context) (*Route, error) {
	out, err := callAPI(ctx, r, &r.balancersPause, r.Balancers.DescribeListeners, &elb.DescribeListenersInput{ListenerArns: []string{r.route.ARN.String()}})
	var missing *types.ListenerNotFoundException
	switch {
	case errors.As(err, &missing) || err == nil && len(out.Listeners) != 1:
		return nil, refuse(ReasonRouteNotFound, "%s does not exist", r.route)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", r.route, err)
	}
	return routeOfListener(r.route.String(), out.Listeners[0]), nil
}

// writeActions writes the actions of the route alone, and returns the route of the answer.
func (r *Router) writeActions(ctx context.Context, actions []types.Action) (*Route, error) {
	name, text := r.route.String(), r.route.ARN.String()
	if r.route.kind == kindRule {
		out, err := callAPI(ctx, r, &r.balancersPause, r.Balancers.ModifyRule, &elb.ModifyRuleInput{RuleArn: aws.String(text), Actions: actions})
		if err == nil && len(out.Rules) == 1 {
			return routeOfRule(name, out.Rules[0]), nil
		}
		return nil, fmt.Errorf("writing weights to %s: %w", name, orIncomplete(err))
	}
	out, err := callAPI(ctx, r, &r.balancersPause, r.Balancers.ModifyListener, &elb.ModifyListenerInput{ListenerArn: aws.String(text), DefaultActions: actions})
	if err == nil && len(out.Listeners) == 1 {
		return routeOfListener(name, out.Listeners[0]), nil
	}
	return nil, fmt.Errorf("writing weights to %s: %w", name, orIncomplete(err))
}

// errIncomplete is the error of an answer with more or fewer routes than one.
var errIncomplete = errors.New("the answer does not have the route")

func orIncomplete(err error) error {
	if err != nil {
		return err
	}
	return errIncomplete
}

// readOwner returns a [RefusalError] if a controller owns the route.
func (r *Router) readOwner(ctx context.Context) error {
	out, err := callAPI(ctx, r, &r.balancersPause, r.Balancers.DescribeTags, &elb.DescribeTagsInput{ResourceArns: r.route.listOwners()})
	if err != nil {
		return fmt.Errorf("reading the tags of %s: %w", r.route, err)
	}
	return checkOwner(r.route.String(), out.TagDescriptions)
}

// readHealth reads the health of the target groups with requests.
func (r *Router) readHealth(ctx context.Context, weights Weights) (map[string][]types.TargetHealthDescription, error) {
	health := map[string][]types.TargetHealthDescription{}
	for _, group := range liveGroups(weights) {
		out, err := callAPI(ctx, r, &r.balancersPause, r.Balancers.DescribeTargetHealth, &elb.DescribeTargetHealthInput{TargetGroupArn: aws.String(group)})
		if err != nil {
			return nil, fmt.Errorf("reading the health of %s: %w", groupDimension(group), err)
		}
		health[group] = out.TargetHealthDescriptions
	}
	return health, nil
}
