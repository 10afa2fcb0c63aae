// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// drifted is the Baseline of a Deployment that has drifted, as the assessor writes it.
func drifted(t *testing.T, name string) *v1alpha1.Baseline {
	t.Helper()
	hash := "pl1:sha256:" + strings.Repeat("d", 64)
	b := &v1alpha1.Baseline{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "deployments.apps." + name},
		Spec:       v1alpha1.BaselineSpec{Target: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name}},
	}
	must(t, asAssessor.Create(t.Context(), b))
	b.Status = v1alpha1.BaselineStatus{State: v1alpha1.StateDrifted, Observed: v1alpha1.ObservedState{Hash: hash, FullHash: hash}}
	must(t, asAssessor.Status().Update(t.Context(), b))
	return b
}

// A remediator asks in the own name, and has no other right: to read no policy, to steer no
// plan, and to accept nothing. A viewer does not ask.
func TestARemediatorRequestsInTheirOwnNameAndNothingElse(t *testing.T) {
	must(t, admin.Create(t.Context(), &v1alpha1.RemediationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly"},
		Spec:       v1alpha1.RemediationPolicySpec{EnvironmentName: "production", Trigger: v1alpha1.TriggerImmediate, Action: v1alpha1.ActionReconcile},
	}))
	eventually(t, "ann", "authors", "policy", "activate", "nightly", "--yes", "--wait=false")
	b := drifted(t, "cart")
	asks := []string{"remediate", "deployment/cart", "--policy", "nightly", "--reason", "INC-9", "--wait=false", "-o", "yaml"}
	got := eventually(t, "rita", "remediators", asks...)
	var printed v1alpha1.RemediationRequest
	must(t, yaml.UnmarshalStrict([]byte(got.Stdout), &printed))
	var stored v1alpha1.RemediationRequest
	must(t, admin.Get(t.Context(), client.ObjectKey{Namespace: tenant, Name: printed.Name}, &stored))
	want := v1alpha1.RemediationRequestSpec{
		PolicyName: "nightly", RequestedBy: "rita", RequestedByGroups: []string{"remediators"}, Reason: "INC-9",
		Targets: []v1alpha1.RequestedTarget{{BaselineName: b.Name, DriftedHash: b.Status.Observed.Hash}},
	}
	if diff := cmp.Diff(want, stored.Spec); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}

	p := plan(t, "of-rita")
	for _, refused := range []struct {
		user, group string
		args        []string
		want        string
	}{
		{"rita", "remediators", []string{"plan", "execute", p.Name}, `User "rita" cannot patch resource "remediationplans"`},
		{"rita", "remediators", []string{"accept", "deployment/cart", "--yes"}, `User "rita" cannot patch resource "baselines"`},
		{"rita", "remediators", []string{"policy", "halt", "nightly"}, `User "rita" cannot get resource "remediationpolicies"`},
		{"vic", "viewers", []string{"remediate", "deployment/cart", "--policy", "nightly"}, `cannot create resource "remediationrequests"`},
	} {
		got := as(t, refused.user, refused.group, append(refused.args, "--wait=false")...)
		if got.Code != 1 || !strings.Contains(got.Stderr, refused.want) {
			t.Errorf("%s: %q gave %+v, want %q", refused.user, refused.args, got, refused.want)
		}
	}
}
