// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// findLate returns the target groups with requests and without a healthy target, in the order of their ARNs, without Since.
// health has the targets of each group with requests.
func findLate(weights Weights, health map[string][]types.TargetHealthDescription) (late []traffic.OutOfSync) {
	for _, group := range liveGroups(weights) {
		if why := findUnhealthy(health[group]); why != "" {
			late = append(late, traffic.OutOfSync{Name: groupDimension(group), Why: why})
		}
	}
	return late
}

// liveGroups returns the target groups with requests, in order.
func liveGroups(weights Weights) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(weights)), func(group string) bool { return weights[group] == 0 })
}

// findUnhealthy returns why no target of a group is healthy; "" if one is.
func findUnhealthy(targets []types.TargetHealthDescription) string {
	if len(targets) == 0 {
		return "the target group has no targets"
	}
	states := map[string]int{}
	for _, target := range targets {
		state := types.TargetHealth{State: "unknown"}
		if target.TargetHealth != nil {
			state = *target.TargetHealth
		}
		if state.State == types.TargetHealthStateEnumHealthy {
			return ""
		}
		states[cmp.Or(string(state.Reason), string(state.State))]++
	}
	var counted []string
	for _, state := range slices.Sorted(maps.Keys(states)) {
		counted = append(counted, fmt.Sprintf("%s: %d", state, states[state]))
	}
	return fmt.Sprintf("no target is healthy (%s)", strings.Join(counted, ", "))
}
