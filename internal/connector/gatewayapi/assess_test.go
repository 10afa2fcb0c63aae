// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

var began = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func condition(kind string, status metav1.ConditionStatus, generation int64) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, ObservedGeneration: generation, Reason: "Reason", Message: "words of the program"}
}

func statusOf(ref ParentRef, controller string, conditions ...metav1.Condition) ParentStatus {
	return ParentStatus{ParentRef: ref, ControllerName: controller, Conditions: conditions}
}

func good() []metav1.Condition {
	return []metav1.Condition{condition("Accepted", metav1.ConditionTrue, 3), condition("ResolvedRefs", metav1.ConditionTrue, 3)}
}

func TestEachParentHasToAcceptTheGeneration(t *testing.T) {
	inside, outside := ParentRef{Name: "inside"}, ParentRef{Name: "outside", Namespace: "edge", SectionName: "https"}
	whole := ParentRef{Group: group, Kind: "Gateway", Namespace: "shop", Name: "inside"}
	for name, tc := range map[string]struct {
		parents []ParentRef
		status  []ParentStatus
		want    traffic.Knowledge
		late    []string
	}{
		"all accept": {
			[]ParentRef{inside, outside}, []ParentStatus{statusOf(outside, "a", good()...), statusOf(whole, "a", good()...)}, traffic.Accepted, nil,
		},
		"one of two refuses": {
			[]ParentRef{inside, outside}, []ParentStatus{
				statusOf(inside, "a", good()...),
				statusOf(outside, "b", condition("Accepted", metav1.ConditionFalse, 3), condition("ResolvedRefs", metav1.ConditionTrue, 3)),
			},
			traffic.Unknown, []string{"Gateway edge/outside section https: controller b: Accepted is False (Reason): words of the program"},
		},
		"a status that never comes": {[]ParentRef{inside}, nil, traffic.Unknown, []string{"Gateway shop/inside: no controller has reported on the parent"}},
		"a status of another section": {
			[]ParentRef{outside}, []ParentStatus{statusOf(ParentRef{Name: "outside", Namespace: "edge"}, "a", good()...)},
			traffic.Unknown, []string{"Gateway edge/outside section https: no controller has reported on the parent"},
		},
		"a status of an older generation": {
			[]ParentRef{inside}, []ParentStatus{statusOf(inside, "a", condition("Accepted", metav1.ConditionTrue, 2), condition("ResolvedRefs", metav1.ConditionTrue, 3))},
			traffic.Unknown, []string{"Gateway shop/inside: controller a: Accepted is of generation 2, and the route has generation 3"},
		},
		"a Service that is not found": {
			[]ParentRef{inside}, []ParentStatus{statusOf(inside, "a", condition("Accepted", metav1.ConditionTrue, 3), condition("ResolvedRefs", metav1.ConditionFalse, 3))},
			traffic.Unknown, []string{"Gateway shop/inside: controller a: ResolvedRefs is False (Reason): words of the program"},
		},
		"half a status": {
			[]ParentRef{inside}, []ParentStatus{statusOf(inside, "a", condition("Accepted", metav1.ConditionTrue, 3))},
			traffic.Unknown, []string{"Gateway shop/inside: controller a: ResolvedRefs is not reported"},
		},
		"of two controllers of one parent one refuses": {
			[]ParentRef{inside}, []ParentStatus{statusOf(inside, "a", good()...), statusOf(inside, "b", condition("Accepted", metav1.ConditionFalse, 3))},
			traffic.Unknown, []string{"Gateway shop/inside: controller b: Accepted is False (Reason): words of the program"},
		},
		"no parent": {nil, nil, traffic.NoProxies, nil},
	} {
		t.Run(name, func(t *testing.T) {
			route := routeOf(twoBackends(""))
			route.Spec.ParentRefs, route.Status.Parents = tc.parents, tc.status
			seen := Assess(route).observation(5, began, began.Add(time.Minute))
			var late []string
			for _, l := range seen.OutOfSync {
				late = append(late, l.Name+": "+l.Why)
				if !l.Since.Equal(began) {
					t.Errorf("%s is late since %s", l.Name, l.Since)
				}
			}
			if d := cmp.Diff(tc.late, late); d != "" || seen.Knowledge != tc.want || seen.Acknowledged != len(tc.parents)-len(tc.late) {
				t.Errorf("got %+v, want %s; late (-want +got):\n%s", seen, tc.want, d)
			}
			if accepted := tc.want == traffic.Accepted; accepted != (seen.Sequence == 5) || seen.IsEffective(5, began) || accepted != seen.IsEffective(5, began.Add(time.Minute)) {
				t.Errorf("sequence 5 is effective by %+v", seen)
			}
		})
	}
}
