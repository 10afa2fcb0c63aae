// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/checks"
	"github.com/plumbline-dev/plumbline/internal/guarddefaults"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// guardsOf is a guard controller with one snapshot, in a cluster without Environments.
type guardsOf struct{ snapshot *guards.Snapshot }

func (g guardsOf) Snapshot() *guards.Snapshot { return g.snapshot }

func (guardsOf) Of(string) *v1alpha1.Environment { return nil }

func (guardsOf) Active() *guarddefaults.Active { return guarddefaults.NewActive(nil, nil) }

// A decision that ended after its Baseline was removed had the object counted for ever.
func TestAnObjectWithoutABaselineAndAGuardIsNotCounted(t *testing.T) {
	served := map[schema.GroupVersionKind]kube.Resource{webKey.GroupVersionKind: {}}
	tests := map[string]*guards.Snapshot{
		"no guard selects it":             {Resources: served, Namespaces: map[string]guards.Namespace{"shop": {}}},
		"its namespace is gone":           {Resources: served},
		"its kind is not served any more": {},
	}
	for name, snapshot := range tests {
		t.Run(name, func(t *testing.T) {
			metrics, err := NewMetrics(prometheus.NewRegistry(), clock.RealClock{})
			if err != nil {
				t.Fatal(err)
			}
			g := guardsOf{snapshot}
			r := reconcilerOn(t)
			r.Objects, r.Guards, r.Environments, r.Defaults, r.Metrics = checks.NewAhead(&watched{}), g, g, g, metrics
			r.Clock = clock.RealClock{}
			r.Prepare()
			late := &subject{key: webKey, baseline: &v1alpha1.Baseline{}}
			late.baseline.Status.State = v1alpha1.StateInSync
			metrics.decided(late, &decision{})
			if n := testutil.CollectAndCount(metrics, "plumbline_drift_objects"); n != 1 {
				t.Fatalf("the decision counts %d objects, want 1", n)
			}
			if _, err := r.Reconcile(t.Context(), webKey); err != nil {
				t.Fatal(err)
			}
			if n := testutil.CollectAndCount(metrics, "plumbline_drift_objects"); n != 0 {
				t.Errorf("%d objects are counted, want none", n)
			}
		})
	}
}
