// SPDX-License-Identifier: Apache-2.0

package packet_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
)

func TestWhichRecordsAPlanNames(t *testing.T) {
	named := func(c string) *v1alpha1.StepEvidence { return &v1alpha1.StepEvidence{Sequence: 1, Digest: digest(c)} }
	p := &v1alpha1.RemediationPlan{}
	p.UID, p.Spec.Plan.Policy.UID = "p", chain
	p.Status.Steps = []v1alpha1.PlanStep{
		{Evidence: named("1"), Effect: &v1alpha1.StepEffect{Evidence: named("2")}}, {Evidence: named("3"), Effect: &v1alpha1.StepEffect{}}, {},
	}
	want := evidence.PlanStatus{UID: "p", Chain: chain, Digests: []string{digest("1"), digest("2"), digest("3")}}
	if diff := cmp.Diff(want, packet.StatusOf(p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
