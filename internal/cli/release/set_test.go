// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// static is a release that divides requests between stable and canary by its spec alone.
func static() *v1alpha1.ABRelease {
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", Generation: 1}}
	r.Spec = v1alpha1.ABReleaseSpec{ServiceName: "web", Stable: "stable", Variations: []v1alpha1.Variation{{Name: "stable"}, {Name: "canary"}}}
	r.Spec.TrafficSplit = v1alpha1.TrafficSplit{Type: "Percentage", Percentages: map[string]v1alpha1.Percentage{"stable": v1alpha1.Percent(90), "canary": v1alpha1.Percent(10)}}
	return r
}

// Users had to patch JSON to change a split.
func TestSet(t *testing.T) {
	answer := func(kind, message string) *metav1.Condition {
		return &metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Tested", Message: message, ObservedGeneration: 2}
	}
	acknowledged := answer(v1alpha1.ConditionAcknowledged, "3 of 3 proxies have split 7")
	half := map[string]v1alpha1.Percentage{"stable": v1alpha1.Percent(50), "canary": v1alpha1.Percent(50)}
	for name, tc := range map[string]struct {
		release *v1alpha1.ABRelease
		args    []string
		// answer of the discovery server; nil for none.
		answer *metav1.Condition
		want   clitest.Answer
		// stored are the percentages that the command has written; nil for none.
		stored map[string]v1alpha1.Percentage
	}{
		"the stable variation gets the rest": {
			args: []string{"web", "canary=50"}, answer: acknowledged, stored: half,
			want: clitest.Answer{Stdout: "shop/web set to stable 50 / canary 50: 3 of 3 proxies have split 7\n"},
		},
		"a percentage with decimals": {
			args: []string{"web", "canary=0.25"}, answer: acknowledged,
			stored: map[string]v1alpha1.Percentage{"stable": {IntOrString: intstr.FromString("99.75")}, "canary": {IntOrString: intstr.FromString("0.25")}},
			want:   clitest.Answer{Stdout: "shop/web set to stable 99.75 / canary 0.25: 3 of 3 proxies have split 7\n"},
		},
		"without a wait the split is set": {
			args: []string{"web", "canary=50", "--wait=false"}, stored: half, want: clitest.Answer{Stdout: "shop/web set to stable 50 / canary 50\n"},
		},
		"without an answer the wait ends": {
			args: []string{"web", "canary=50", "--timeout=10ms"}, stored: half,
			want: clitest.Answer{Code: 1, Stderr: "error: shop/web: set to stable 50 / canary 50, and not acknowledged within 10ms: no discovery server has answered\n"},
		},
		"a release that is Stalled keeps its former split": {
			args: []string{"web", "canary=50"}, answer: answer(v1alpha1.ConditionStalled, "another release is older"), stored: half,
			want: clitest.Answer{Code: 1, Stderr: "error: shop/web: set to stable 50 / canary 50, and not effective: another release is older\n"},
		},
		"a dry run stores no split": {
			args: []string{"web", "canary=50", "--dry-run"}, want: clitest.Answer{Stdout: "shop/web set to stable 50 / canary 50 (dry run)\n"},
		},
		"a variation that is unknown": {
			args: []string{"web", "cannary=50"}, want: clitest.Answer{Code: 1, Stderr: "error: shop/web was not set: it has no variation \"cannary\", but stable, canary\n"},
		},
		"a release with a rollout": {
			release: rolling(), args: []string{"web", "green=50"},
			want: clitest.Answer{Code: 1, Stderr: "error: shop/web was not set: it has spec.rollout, so the stages of its runs set the percentages\n"},
		},
		"a mistake in the command line": {
			args: []string{"web", "canary"}, want: clitest.Answer{Code: 1, Stderr: "error: give each variation once, as VARIATION=PERCENTAGE: \"canary\"\nSee 'kubectl plumbline release set -h' for help and examples\n"},
		},
		"a release alone": {
			args: []string{"web"}, want: clitest.Answer{Code: 1, Stderr: "error: name one release, and percentages as VARIATION=PERCENTAGE\nSee 'kubectl plumbline release set -h' for help and examples\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.release == nil {
				tc.release = static()
			}
			f := clitest.Cluster{Objects: []client.Object{tc.release.DeepCopy()}}
			var stored map[string]v1alpha1.Percentage
			f.Hooks.Patch = func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				if err := api.Patch(ctx, object, patch, options...); err != nil {
					return err
				}
				r := object.(*v1alpha1.ABRelease)
				stored = r.Spec.TrafficSplit.Percentages
				r.Generation = 2 // as an API server counts changes of a spec
				answered := r.DeepCopy()
				if tc.answer != nil {
					meta.SetStatusCondition(&answered.Status.Conditions, *tc.answer)
				}
				return api.Update(ctx, answered)
			}
			got := f.Run(t, commands, "", append([]string{"release", "set"}, tc.args...)...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.stored, stored); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}
