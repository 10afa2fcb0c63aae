// SPDX-License-Identifier: Apache-2.0

//go:build integration

package remediate

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// H10 of the guard's review: a tenant's junk and drift froze the repair of all
// others under the same guard.
func TestATenantsJunkAndDriftDoNotFreezeTheRepairOfAnotherNamespace(t *testing.T) {
	const junk, drifting = 45, 6
	w, tenant := newWorld(t), newWorld(t)
	start(t)
	g := w.UnderClusterGuard(w.Name, tenant.Name)
	w.running("web", "db", "cache", "queue")
	for i := range junk {
		tenant.Deploy(alice, fmt.Sprint("junk-", i))
	}
	for i := range drifting {
		tenant.running(fmt.Sprint("own-", i))
		tenant.SetImage(alice, fmt.Sprint("own-", i), evil)
	}
	w.Eventually("the guard counts the drift of the tenant", func() error {
		w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(g), g))
		if g.Status.Drifted != junk+drifting || g.Status.MassDrift == nil {
			return fmt.Errorf("it counts %d, and frozen is %+v", g.Status.Drifted, g.Status.MassDrift)
		}
		return nil
	})
	w.policy()
	tenant.policy()
	w.SetImage(alice, "web", evil)
	w.untilTargets("web")
	tenant.untilPolicy("nothing of the tenant is repaired", counts(junk+drifting, junk+drifting, 0))
	if plans := tenant.plans(); len(plans) > 0 {
		t.Errorf("%d plans for the namespace of the tenant", len(plans))
	}
}
