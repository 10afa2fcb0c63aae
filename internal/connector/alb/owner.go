// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
)

// The tags that the AWS Load Balancer Controller gives to each resource that it makes. The controller writes its own
// rules again, and deletes the other rules of its listeners.
var (
	controllerTags     = []string{"elbv2.k8s.aws/cluster", "ingress.k8s.aws/cluster"}
	controllerPrefixes = []string{"ingress.k8s.aws/", "service.k8s.aws/", "gateway.k8s.aws/"}
)

// checkOwner returns a [RefusalError] if tags say that the AWS Load Balancer Controller owns a route.
func checkOwner(route string, described []types.TagDescription) error {
	var owners []string
	for _, resource := range described {
		for _, tag := range resource.Tags {
			if key := aws.ToString(tag.Key); isOfController(key) {
				owners = append(owners, key+"="+aws.ToString(tag.Value))
			}
		}
	}
	if slices.SortFunc(owners, cmp.Compare); len(owners) == 0 {
		return nil
	}
	return refuse(ReasonRouteOwned, "the AWS Load Balancer Controller owns %s by the tag %s, and would undo the weights; use a TrafficRouter of type GatewayAPI for the HTTPRoute of the controller",
		route, owners[0])
}

func isOfController(key string) bool {
	return slices.Contains(controllerTags, key) ||
		slices.ContainsFunc(controllerPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}
