// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// The planner counted a mass drift whose first drift was about to be too old, and its guard counted none
// a moment later. No event told that, and the drift was left alone for good.
func TestAMassDriftThatNoGuardTellsOfIsCountedAgain(t *testing.T) {
	c := newCluster(t)
	for _, name := range []string{"web", "db", "cache"} {
		c.Drift(name, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil:1" })
		c.Baselines[name].Status.FirstSeenTime = &metav1.Time{Time: epoch.Add(time.Second - specguard.MassDriftWindow)}
	}
	in := c.gather().Input
	if out := planner.Make(&in); len(out.Plans) != 0 || !out.NextLook.Equal(epoch.Add(countedAgain)) {
		t.Errorf("%d plans, and the next look is at %s", len(out.Plans), out.NextLook)
	}
	c.Guard.Status.MassDrift = &v1alpha1.MassDrift{Namespaces: []v1alpha1.FrozenNamespace{{Name: "shop", StartTime: metav1.NewTime(epoch)}}}
	in = c.gather().Input
	if out := planner.Make(&in); len(out.Plans) != 0 || !out.NextLook.IsZero() {
		t.Errorf("with a guard that tells of it: %d plans, and the next look is at %s", len(out.Plans), out.NextLook)
	}
}
