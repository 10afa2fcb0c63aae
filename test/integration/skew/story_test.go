// SPDX-License-Identifier: Apache-2.0

//go:build integration

package skew

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// checkWork has each server of an installation do its work in a namespace of its own.
func (w *world) checkWork(t *testing.T) {
	t.Helper()
	s := remediation.NewWorld(t, w.cluster, nil)
	s.Rollouts()
	s.Guard()
	remediation.UnderGuards([]*remediation.World{s})
	checkStamp(t, s)
	policy := s.Policy()
	s.Drifted("web")
	s.Until("web", "the finding names its writer", func(b *v1alpha1.Baseline) error {
		if by := b.Status.Findings[0].Actor; by.User != remediation.Mallory {
			return fmt.Errorf("the finding names %+v", by)
		}
		return nil
	})
	if p := s.Ended(s.Plan(policy, "web")); p.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("the plan is %s", remediation.Describe(p))
	}
	s.UntilIs("web", "InSync")
	w.checkRelease(t, s.Name)
}

// checkStamp waits until the webhook stamps the hash of a write.
func checkStamp(t *testing.T, s *remediation.World) {
	t.Helper()
	user := s.As(guarded.CI)
	s.Eventually("the webhook stamps a hash", func() error {
		probe := guarded.Deployment(s.Name, "probe")
		err := user.Create(t.Context(), probe, client.DryRunAll)
		if err == nil && probe.Annotations[v1alpha1.AnnotationSpecHash] == "" {
			err = errors.New("a dry run has no stamp")
		}
		return err
	})
}

// checkRelease waits until the discovery server has decided about a release, and checks that
// the spec has all of its fields then.
func (w *world) checkRelease(t *testing.T, namespace string) {
	t.Helper()
	release := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"serviceName": "web", "stable": "stable",
		"variations": []any{
			map[string]any{"name": "stable", "workload": map[string]any{"kind": "Deployment", "name": "web"}},
			map[string]any{"name": "canary", "workload": map[string]any{"kind": "Deployment", "name": "web-canary"}},
		},
		"trafficSplit": map[string]any{"type": "Percentage", "percentages": map[string]any{"stable": int64(90), "canary": int64(10)}},
		"routers":      []any{map[string]any{"name": "edge"}},
	}}}
	release.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ABRelease"))
	release.SetNamespace(namespace)
	release.SetName("web")
	must(t, w.clientOf("").Create(t.Context(), release))
	spec := release.Object["spec"]
	poll.Until(t, patience, "the discovery server has decided about the release", func() error {
		if err := w.readObject(release); err != nil {
			return err
		}
		observed, _, err := unstructured.NestedInt64(release.Object, "status", "observedGeneration")
		if err == nil && observed != release.GetGeneration() {
			err = fmt.Errorf("its status is of generation %d", observed)
		}
		return err
	})
	if diff := cmp.Diff(spec, release.Object["spec"]); diff != "" {
		t.Errorf("the spec of a release before and after the status (-before +after):\n%s", diff)
	}
}
