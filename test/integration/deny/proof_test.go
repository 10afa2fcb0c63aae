// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// TestOnlyTheProbeIsRefused: what the policy has to do with the status of guards
// is one dry run by one user with one mark.
func TestOnlyTheProbeIsRefused(t *testing.T) {
	s := newShop(t, nil)
	g := s.guarded(t)
	const mark = `{"status":{"conditions":[{"type":"EnforcementProbe","status":"Unknown","reason":"Probe","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`
	dry := &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}}
	wet := &client.SubResourcePatchOptions{}
	tests := map[string]struct {
		who     client.Client
		patch   string
		options *client.SubResourcePatchOptions
		refused bool
	}{
		"the assessor's probe":                        {as(t, assessorUser), mark, dry, true},
		"the assessor's dry run without the mark":     {as(t, assessorUser), `{"status":{"objects":3}}`, dry, false},
		"the assessor's own status":                   {as(t, assessorUser), `{"status":{"objects":3}}`, wet, false},
		"the assessor's mark that would be stored":    {as(t, assessorUser), mark, wet, false},
		"an administrator's dry run with the mark":    {as(t, "root", "roots"), mark, dry, false},
		"an administrator's status":                   {as(t, "root", "roots"), `{"status":{"objects":3}}`, wet, false},
		"the garbage collector's dry run with a mark": {as(t, "system:serviceaccount:kube-system:generic-garbage-collector", "roots"), mark, dry, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			target := &v1alpha1.ClusterSpecGuard{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}
			// A mark another case stored would make this dry run one with the mark.
			unmarked := client.RawPatch(types.MergePatchType, []byte(`{"status":{"conditions":null}}`))
			mustDo(t, admin.Status().Patch(t.Context(), target.DeepCopy(), unmarked))
			err := test.who.Status().Patch(t.Context(), target, client.RawPatch(types.MergePatchType, []byte(test.patch)), test.options)
			if !test.refused {
				wantAllowed(t, err)
				return
			}
			if !isProof(err, g) {
				t.Errorf("got %v, want the proof", err)
			}
		})
	}
	t.Run("the assessor changes another guard's status while this one denies", func(t *testing.T) {
		other := guard(s.namespace+"-audit", s.namespace)
		other.Spec.Mode = v1alpha1.GuardModeAudit
		mustDo(t, admin.Create(t.Context(), other))
		wantAllowed(t, probe(t.Context(), other))
		mustDo(t, admin.Delete(t.Context(), other))
	})
}
