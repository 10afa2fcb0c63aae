// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// The conditions of a parent, by the specification of Gateway API.
var acceptance = []string{"Accepted", "ResolvedRefs"}

// Verdict is what the parents of a route say of its generation.
type Verdict struct {
	// Wanted counts the parents of the spec.
	Wanted int
	// Late are the parents that have not accepted the generation, in the order of the spec. Their Since is not set.
	Late []traffic.OutOfSync
}

// IsAccepted tells whether each parent has accepted the generation, and one parent is there.
func (v Verdict) IsAccepted() bool { return v.Wanted > 0 && len(v.Late) == 0 }

// Assess returns what the parents say. A parent accepts if each controller that reports on it says Accepted and
// ResolvedRefs for the generation of the route, and one controller reports.
func Assess(route *Route) Verdict {
	verdict := Verdict{Wanted: len(route.Spec.ParentRefs)}
	for _, parent := range route.Spec.ParentRefs {
		parent = parent.in(route.Namespace)
		if why := objection(route, parent); why != "" {
			verdict.Late = append(verdict.Late, traffic.OutOfSync{Name: parent.String(), Why: why})
		}
	}
	return verdict
}

// objection returns why a parent has not accepted the generation; "" if it has.
func objection(route *Route, parent ParentRef) string {
	reported := false
	for _, status := range route.Status.Parents {
		if status.ParentRef.in(route.Namespace) != parent {
			continue
		}
		reported = true
		for _, kind := range acceptance {
			if why := refusedBy(status.Conditions, kind, route.Generation); why != "" {
				return fmt.Sprintf("controller %s: %s", status.ControllerName, why)
			}
		}
	}
	if !reported {
		return "no controller has reported on the parent"
	}
	return ""
}

func refusedBy(conditions []metav1.Condition, kind string, generation int64) string {
	switch condition := meta.FindStatusCondition(conditions, kind); {
	case condition == nil:
		return kind + " is not reported"
	case condition.ObservedGeneration != generation:
		return fmt.Sprintf("%s is of generation %d, and the route has generation %d", kind, condition.ObservedGeneration, generation)
	case condition.Status != metav1.ConditionTrue:
		return fmt.Sprintf("%s is %s (%s): %s", kind, condition.Status, condition.Reason, condition.Message)
	}
	return ""
}

// observation returns what a verdict means for a sequence whose weights the route has. Accepted counts from settled on.
func (v Verdict) observation(sequence uint64, told, settled time.Time) traffic.Observation {
	seen := traffic.Observation{Knowledge: traffic.Unknown, Wanted: v.Wanted, Acknowledged: v.Wanted - len(v.Late), OutOfSync: v.Late}
	for i := range seen.OutOfSync {
		seen.OutOfSync[i].Since = told
	}
	switch {
	case v.Wanted == 0:
		seen.Knowledge = traffic.NoProxies
	case v.IsAccepted():
		seen.Knowledge, seen.Sequence, seen.SettledAt = traffic.Accepted, sequence, settled
	}
	return seen
}
