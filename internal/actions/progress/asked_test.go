// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestQueriesAndWebhooksAreGates(t *testing.T) {
	g := gates{in: &v1alpha1.RolloutStatus{
		Waiting: &v1alpha1.RolloutWait{Reason: "Gate", Message: "board says Wait"},
		Gates: []v1alpha1.RolloutGateStatus{
			{Kind: "Query", Name: "slo", Result: "Pass", Value: "99.9"}, {Kind: "Webhook", Name: "board", Result: "Wait", Message: "the board meets at noon"},
			{Kind: "Query", Name: "errors", Result: "NoData"}, {Kind: "Query", Name: "later", Result: "Perhaps"},
		},
	}}
	want := []Gate{
		{"Query slo", GateOK, "99.9: Pass", ""}, {"Webhook board", GateHolds, "Wait, the board meets at noon", ""}, {"Query errors", GateHolds, "NoData", ""},
		{"Query later", GateHolds, "Perhaps", ""}, {"Gates", GateHolds, "board says Wait", "the queries and webhooks have to pass, or a person takes them out of the spec"},
	}
	if diff := cmp.Diff(want, g.asked()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (&gates{in: &v1alpha1.RolloutStatus{}}).asked(); got != nil {
		t.Errorf("without any: %+v", got)
	}
}
