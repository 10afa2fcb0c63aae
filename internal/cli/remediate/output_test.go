// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/internal/actions/preview"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A program reads the request and its answer, and nothing else on standard output.
func TestRemediate_PrintsTheRequestForAProgram(t *testing.T) {
	planned := v1alpha1.RemediationRequestStatus{Outcome: v1alpha1.RequestPlanned, PlanName: "p"}
	refused := v1alpha1.RemediationRequestStatus{
		Outcome: v1alpha1.RequestRefused, LeftOut: []v1alpha1.LeftOut{{BaselineName: "deployments.apps.web", Reason: "MassDrift", Message: "too many"}},
	}
	for name, test := range map[string]struct {
		plan   func(*v1alpha1.RemediationPlan)
		answer v1alpha1.RemediationRequestStatus
		args   []string
		code   int
		named  string
		stderr string
	}{
		"a plan that runs":             {plan: clitest.InPhase(v1alpha1.PlanRunning), answer: planned, args: []string{"-o", "yaml"}, named: "remediate-x"},
		"a plan that runs, in JSON":    {plan: clitest.InPhase(v1alpha1.PlanRunning), answer: planned, args: []string{"-o", "json"}, named: "remediate-x"},
		"a plan that fails":            {plan: clitest.InPhase(v1alpha1.PlanFailed), answer: planned, args: []string{"-o", "yaml"}, code: 1, named: "remediate-x", stderr: "error: shop/p: begun, and ended as Failed\n"},
		"a request that is refused":    {answer: refused, args: []string{"-o", "yaml"}, code: 1, named: "remediate-x", stderr: "error: shop/deployment.apps/web is not remediated: MassDrift: too many\n"},
		"a request without its answer": {args: []string{"-o", "yaml", "--wait=false"}, named: "remediate-x"},
		"a server dry run":             {args: []string{"-o", "yaml", "--dry-run=server"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := clitest.Shop(t, clitest.ActiveBy("bob"), clitest.TooOld)
			plan := clitest.PlanOf("p")
			if test.plan != nil {
				test.plan(plan)
			}
			f.Objects = append(f.Objects, plan)
			var stored v1alpha1.RemediationRequest
			got := answering(f, test.answer, &stored).Run(t, verbs, "", append([]string{"remediate", "deployment/web", "--policy", "production"}, test.args...)...)
			if got.Code != test.code || got.Stderr != test.stderr {
				t.Errorf("got %+v, want code %d and %q", got, test.code, test.stderr)
			}
			var printed v1alpha1.RemediationRequest
			if err := yaml.UnmarshalStrict([]byte(got.Stdout), &printed); err != nil {
				t.Fatalf("%v: %s", err, got.Stdout)
			}
			if printed.Kind != "RemediationRequest" || printed.APIVersion != "plumbline.dev/v1alpha1" || printed.Name != test.named || printed.Spec.RequestedBy != "alice" {
				t.Errorf("printed is %+v", printed)
			}
			if diff := cmp.Diff(test.answer, printed.Status); diff != "" {
				t.Errorf("the answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemediate_PrintsThePreviewForAProgram(t *testing.T) {
	got := clitest.Shop(t, clitest.ActiveBy("bob"), clitest.TooOld).Run(t, verbs, "", "remediate", "deployment/web", "--policy", "production", "--dry-run", "-o", "json")
	var report preview.Report
	if err := json.Unmarshal([]byte(got.Stdout), &report); err != nil || got.Code != 0 {
		t.Fatalf("got %+v: %v", got, err)
	}
	if len(report.Plans) != 1 || len(report.Plans[0].Steps) != 1 || len(report.LeftOut) != 0 {
		t.Errorf("the report is %+v", report)
	}
}

func TestRemediate_PrintsInNoOtherForm(t *testing.T) {
	got := clitest.Shop(t).Run(t, verbs, "", "remediate", "deployment/web", "--policy", "p", "-o", "wide")
	if got.Code != 1 || got.Stdout != "" {
		t.Errorf("got %+v", got)
	}
}
