// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// applies has a user apply an image server-side, under the name of CI's manager.
func (w *world) applies(user, name, image string) {
	w.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name, "namespace": w.Name},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "app", "image": image}},
		}}},
	}}
	w.Must(w.As(user).Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("ci")))
}

// D6 of the review of remediation: CI applied the hotfix as it was, and the policy put the
// old image back.
func TestAHotfixThatCIAppliesIsNotPutBack(t *testing.T) {
	assessor := startAssessor(t)
	// In this order, because the last one needs that no assessor runs.
	for _, test := range []struct {
		name, user string
		// judged: the assessor sees the apply before the executor looks.
		judged bool
		image  string
		says   string
	}{
		{"CI applies it", ci, true, remediation.EvilImage, "another state was authorized since the plan was made"},
		{"mallory applies it in CI's name", mallory, true, guarded.Image, ""},
		{"CI applies it, and no assessor looks", ci, false, remediation.EvilImage, "an apply of the live state is not judged yet"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.Rollouts()
			w.UnderGuard()
			w.Drifted("web")
			plan := w.plan(w.policy(selectsNothing), "web")
			if !test.judged {
				assessor.Halt(t)
			}
			w.applies(test.user, "web", remediation.EvilImage)
			if test.judged {
				stamp := w.Live("web").Annotations[v1alpha1.AnnotationApplied]
				w.Until("web", "the apply is judged", func(b *v1alpha1.Baseline) error {
					if b.Status.Observed.Applied != stamp {
						return fmt.Errorf("the assessor has seen %q", b.Status.Observed.Applied)
					}
					return nil
				})
			}
			startExecutor(t, newEvidence(t))
			plan = w.Ended(plan)
			if got := plan.Status.Steps[0].Message; !strings.Contains(got, test.says) {
				t.Errorf("the step says %q, want %q", got, test.says)
			}
			if got := imageOf(w.Live("web")); got != test.image {
				t.Errorf("the image is %s, want %s", got, test.image)
			}
		})
	}
}
