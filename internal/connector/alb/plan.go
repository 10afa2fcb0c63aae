// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
)

// Route is a rule, or a listener with its default action, as the API answered.
type Route struct {
	// Name is for people.
	Name string
	// IsDefaultRule says that the route is a rule whose actions the listener has.
	IsDefaultRule bool
	// Actions are carried out in order. The last one forwards requests to target groups.
	Actions []types.Action
	// rest is the rule or the listener without its actions.
	rest any
}

func routeOfRule(name string, rule types.Rule) *Route {
	route := &Route{Name: name, IsDefaultRule: aws.ToBool(rule.IsDefault), Actions: rule.Actions}
	rule.Actions = nil
	route.rest = rule
	return route
}

func routeOfListener(name string, listener types.Listener) *Route {
	route := &Route{Name: name, Actions: listener.DefaultActions}
	listener.DefaultActions = nil
	route.rest = listener
	return route
}

// Plan returns the actions that give the target groups of a route their weights. It returns nil if the target groups have
// the weights, and a [RefusalError] if the route cannot have them. Each other field of the actions stays as it is.
func Plan(route *Route, weights Weights) ([]types.Action, error) {
	if route.IsDefaultRule {
		return nil, refuse(ReasonDefaultRule, "%s is the default rule; name its listener in the router of the release", route.Name)
	}
	at, err := findForward(route)
	if err != nil {
		return nil, err
	}
	if err := checkForward(route, route.Actions[at].ForwardConfig, weights); err != nil {
		return nil, err
	}
	if hasWeights(route.Actions[at].ForwardConfig, weights) {
		return nil, nil
	}
	actions := slices.Clone(route.Actions)
	forward := *actions[at].ForwardConfig
	forward.TargetGroups = slices.Clone(forward.TargetGroups)
	for i := range forward.TargetGroups {
		group := &forward.TargetGroups[i]
		group.Weight = aws.Int32(weights[aws.ToString(group.TargetGroupArn)])
	}
	actions[at].ForwardConfig = &forward
	return keepSecrets(actions), nil
}

// keepSecrets has AWS keep the client secrets of actions that authenticate. AWS does not tell secrets, and refuses a write
// that has neither a secret nor this mark.
func keepSecrets(actions []types.Action) []types.Action {
	for i := range actions {
		if actions[i].AuthenticateOidcConfig != nil {
			kept := *actions[i].AuthenticateOidcConfig
			kept.UseExistingClientSecret = aws.Bool(true)
			actions[i].AuthenticateOidcConfig = &kept
		}
	}
	return actions
}

// findForward returns the index of the action that forwards. An unknown type is refused, because a write would drop the
// fields of the action.
func findForward(route *Route) (int, error) {
	found := -1
	for i := range route.Actions {
		switch kind := route.Actions[i].Type; kind {
		case types.ActionTypeEnumForward:
			found = i
		case types.ActionTypeEnumAuthenticateOidc, types.ActionTypeEnumAuthenticateCognito, types.ActionTypeEnumJwtValidation:
		case types.ActionTypeEnumRedirect, types.ActionTypeEnumFixedResponse:
			return 0, refuse(ReasonActionUnsupported, "%s has the action %s; give it an action that forwards to the target groups of the variations", route.Name, kind)
		default:
			return 0, refuse(ReasonActionUnsupported, "%s has the unknown action %q", route.Name, kind)
		}
	}
	if found < 0 || route.Actions[found].ForwardConfig == nil {
		return 0, refuse(ReasonActionUnsupported, "%s forwards to no list of target groups; give it an action that forwards to the target groups of the variations", route.Name)
	}
	return found, nil
}

// checkForward returns the first reason why an action cannot carry weights out.
func checkForward(route *Route, forward *types.ForwardActionConfig, weights Weights) error {
	if sticky := forward.TargetGroupStickinessConfig; sticky != nil && aws.ToBool(sticky.Enabled) {
		return refuse(ReasonStickiness, "%s keeps clients at a target group; disable the stickiness of its target groups", route.Name)
	}
	seen := map[string]bool{}
	for _, group := range forward.TargetGroups {
		arn := aws.ToString(group.TargetGroupArn)
		if _, wanted := weights[arn]; !wanted || seen[arn] {
			return refuse(ReasonTargetGroupsDiffer, "%s has target group %s once too often; its target groups have to be those of the variations", route.Name, arn)
		}
		seen[arn] = true
	}
	var missing []string
	for arn := range weights {
		if !seen[arn] {
			missing = append(missing, arn)
		}
	}
	if slices.Sort(missing); len(missing) > 0 {
		return refuse(ReasonTargetGroupsDiffer, "%s lacks target group %s; its target groups have to be those of the variations", route.Name, strings.Join(missing, ", "))
	}
	return nil
}

// hasWeights tells whether each target group has its weight. A target group without a weight has another one.
func hasWeights(forward *types.ForwardActionConfig, weights Weights) bool {
	return !slices.ContainsFunc(forward.TargetGroups, func(group types.TargetGroupTuple) bool {
		return group.Weight == nil || *group.Weight != weights[aws.ToString(group.TargetGroupArn)]
	})
}

// compareKept returns an error if a field of a route, other than a weight, differs between the read and the answer to the
// write. Another writer has then changed the route between them.
func compareKept(before, after *Route) error {
	if !reflect.DeepEqual(before.rest, after.rest) || !reflect.DeepEqual(withoutWeights(before.Actions), withoutWeights(after.Actions)) {
		return fmt.Errorf("%s has other fields than before the write; another writer changed it meanwhile", before.Name)
	}
	return nil
}

// withoutWeights returns actions without weights, and without the mark that keeps a secret.
func withoutWeights(actions []types.Action) []types.Action {
	bare := slices.Clone(actions)
	for i := range bare {
		if bare[i].ForwardConfig != nil {
			forward := *bare[i].ForwardConfig
			forward.TargetGroups = slices.Clone(forward.TargetGroups)
			for j := range forward.TargetGroups {
				forward.TargetGroups[j].Weight = nil
			}
			bare[i].ForwardConfig = &forward
		}
		if bare[i].AuthenticateOidcConfig != nil {
			oidc := *bare[i].AuthenticateOidcConfig
			oidc.UseExistingClientSecret = nil
			bare[i].AuthenticateOidcConfig = &oidc
		}
	}
	return bare
}
