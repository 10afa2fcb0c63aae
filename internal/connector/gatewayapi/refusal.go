// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import "fmt"

// Reason names a refusal, as a condition does.
type Reason string

// The reasons why a route cannot carry a split out.
const (
	// ReasonRouteNotFound: the route is not there.
	ReasonRouteNotFound Reason = "RouteNotFound"
	// ReasonNotPermitted: the rights of the process do not reach the route.
	ReasonNotPermitted Reason = "NotPermitted"
	// ReasonRuleNotNamed: the route has several rules, and the release names none.
	ReasonRuleNotNamed Reason = "RuleNotNamed"
	// ReasonRuleNotFound: no rule has the name.
	ReasonRuleNotFound Reason = "RuleNotFound"
	// ReasonBackendUnsupported: a backend is no Service of the namespace of the route.
	ReasonBackendUnsupported Reason = "BackendUnsupported"
	// ReasonBackendsDiffer: the backends are not exactly the Services of the variations.
	ReasonBackendsDiffer Reason = "BackendsDiffer"
	// ReasonOtherBackendHasWeight: a backend of no variation has a share of the requests.
	ReasonOtherBackendHasWeight Reason = "OtherBackendHasWeight"
	// ReasonFiltersDiffer: two backends have different filters, so a request changes with its variation.
	ReasonFiltersDiffer Reason = "FiltersDiffer"
	// ReasonSessionPersistence: the rule keeps sessions on a backend, whatever the weight is.
	ReasonSessionPersistence Reason = "SessionPersistence"
)

// RefusalError says why a route, as it is now, cannot carry a split out.
type RefusalError struct {
	Reason Reason
	// Text names the route, what is wrong, and the way out.
	Text string
}

func (e *RefusalError) Error() string { return string(e.Reason) + ": " + e.Text }

func refuse(reason Reason, format string, args ...any) *RefusalError {
	return &RefusalError{reason, fmt.Sprintf(format, args...)}
}
