// SPDX-License-Identifier: Apache-2.0

package alb

import "fmt"

// Reason names a refusal, as a condition does.
type Reason string

// The reasons why a route cannot carry a split out.
const (
	// ReasonARN: a text is not the ARN of a rule, a listener or a target group.
	ReasonARN Reason = "ARNInvalid"
	// ReasonRegion: the resource is in another region than the router.
	ReasonRegion Reason = "OtherRegion"
	// ReasonAccount: the resource is in another account than the router.
	ReasonAccount Reason = "OtherAccount"
	// ReasonRouteNotFound: the rule or the listener does not exist.
	ReasonRouteNotFound Reason = "RouteNotFound"
	// ReasonDefaultRule: the rule is the default one, whose actions the listener has.
	ReasonDefaultRule Reason = "DefaultRule"
	// ReasonRouteOwned: a controller owns the route, and would undo the weights.
	ReasonRouteOwned Reason = "RouteOwned"
	// ReasonActionUnsupported: the last action does not forward, or an action has an unknown type.
	ReasonActionUnsupported Reason = "ActionUnsupported"
	// ReasonStickiness: the action keeps clients at a target group, whatever the weight is.
	ReasonStickiness Reason = "Stickiness"
	// ReasonTargetGroupsDiffer: the target groups are not exactly those of the variations.
	ReasonTargetGroupsDiffer Reason = "TargetGroupsDiffer"
)

// RefusalError says why a route cannot carry a split out.
type RefusalError struct {
	Reason Reason
	// Text names the route, what is wrong, and the way out.
	Text string
}

func (e *RefusalError) Error() string { return string(e.Reason) + ": " + e.Text }

func refuse(reason Reason, format string, args ...any) *RefusalError {
	return &RefusalError{reason, fmt.Sprintf(format, args...)}
}
