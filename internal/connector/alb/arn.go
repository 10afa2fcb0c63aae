// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
)

// service is the name of Elastic Load Balancing in ARNs.
const service = "elasticloadbalancing"

// The kinds of resources in ARNs.
const (
	kindRule         = "listener-rule"
	kindListener     = "listener"
	kindLoadBalancer = "loadbalancer"
	kindTargetGroup  = "targetgroup"
)

// resource is an object of Elastic Load Balancing.
type resource struct {
	arn.ARN
	kind string
	// path has the parts of the name: app, NAME and ID of the balancer, then the ID of the listener, then that of the rule.
	path []string
}

// parseResource reads the ARN of a resource of one of the kinds. It returns a [RefusalError] for another text, and for an
// ARN of another region or account.
func parseResource(text, region, account string, kinds ...string) (resource, error) {
	parsed, err := arn.Parse(text)
	if err != nil {
		return resource{}, refuse(ReasonARN, "%.200q is no ARN", text)
	}
	parts := strings.Split(parsed.Resource, "/")
	r := resource{parsed, parts[0], parts[1:]}
	switch {
	case parsed.Service != service || !slices.Contains(kinds, r.kind) || !r.isComplete():
		return resource{}, refuse(ReasonARN, "%.200q is no %s of an Application Load Balancer", text, strings.Join(kinds, " or "))
	case parsed.Region != region:
		return resource{}, refuse(ReasonRegion, "%s is in region %s, and the router works in %s", text, parsed.Region, region)
	case parsed.AccountID != account:
		return resource{}, refuse(ReasonAccount, "%s is in account %s, and the router works in %s", text, parsed.AccountID, account)
	}
	return r, nil
}

// isComplete tells whether the name has the parts of its kind. Network Load Balancers have no weights, so the name of a
// balancer begins with app.
func (r resource) isComplete() bool {
	if slices.Contains(r.path, "") {
		return false
	}
	switch r.kind {
	case kindTargetGroup:
		return len(r.path) == 2
	case kindListener:
		return len(r.path) == 4 && r.path[0] == "app"
	case kindRule:
		return len(r.path) == 5 && r.path[0] == "app"
	}
	return false
}

// String returns the name without region and account, for people.
func (r resource) String() string { return r.kind + " " + strings.Join(r.path, "/") }

// listOwners returns the ARNs of the route, of its listener and of its balancer. Their tags say whether a controller owns
// the route.
func (r resource) listOwners() []string {
	of := func(kind string, parts int) string {
		owner := r.ARN
		owner.Resource = kind + "/" + strings.Join(r.path[:parts], "/")
		return owner.String()
	}
	arns := []string{of(kindLoadBalancer, 3), of(kindListener, 4)}
	if r.kind == kindRule {
		arns = append(arns, r.ARN.String())
	}
	return arns
}

// balancerDimension is the value of the dimension LoadBalancer of a metric.
func (r resource) balancerDimension() string { return strings.Join(r.path[:3], "/") }

// groupDimension is the value of the dimension TargetGroup of a metric, for the ARN of a target group.
func groupDimension(group string) string { return group[strings.LastIndex(group, ":")+1:] }
