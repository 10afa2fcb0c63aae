// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// discoveryCalls counts what an assessor asks of the API server's discovery.
type discoveryCalls struct {
	mu          sync.Mutex
	all, single int
}

func (c *discoveryCalls) note(r *http.Request) error {
	path := strings.Trim(r.URL.Path, "/")
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case path == "api" || path == "apis":
		c.all++
	case strings.HasPrefix(path, "apis/nobody"):
		c.single++
	}
	return nil
}

func (c *discoveryCalls) counted() (all, single int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all, c.single
}

// unknownKinds is a guard over 32 kinds that nobody serves.
func unknownKinds(namespace string, i int) *v1alpha1.SpecGuard {
	g := &v1alpha1.SpecGuard{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("unknown-%d", i)}}
	for k := range 32 {
		g.Spec.Resources = append(g.Spec.Resources, v1alpha1.GuardedResource{APIVersion: fmt.Sprintf("nobody%d.example.com/v1", i*32+k), Kind: "Nothing"})
	}
	return g
}

// H2 of the guard's review: each kind that nobody serves was asked for by a call of its
// own, each time that any guard changed, while everybody's guards waited.
func TestATenantsGuardsOverKindsThatNobodyServesCostNoCallsAndDelayNobody(t *testing.T) {
	tenant := newWorld(t)
	p := start(t)
	calls := &discoveryCalls{}
	p.faults.when(calls.note)
	for i := range specguard.MaxNamespaceGuards + 1 {
		tenant.Must(tenant.As(alice).Create(tenant.Ctx(), unknownKinds(tenant.namespace, i)))
	}
	other := newWorld(t)
	g := other.UnderGuard()
	other.Deploy(ci, "web")
	other.UntilIs("web", "InSync")
	all, single := calls.counted()
	t.Logf("%d listings of all kinds, %d calls for single groups", all/2, single)
	if single > 0 {
		t.Errorf("%d calls were made for groups that a tenant invented", single)
	}
	other.guardReads(g, func() []metav1.Condition { return g.Status.Conditions }, "Ready=True")
	// The guard beyond the bound of its namespace says so.
	var beyond []string
	tenant.Eventually("one guard is beyond the bound", func() error {
		var guards v1alpha1.SpecGuardList
		if err := admin.List(tenant.Ctx(), &guards); err != nil {
			return err
		}
		beyond = nil
		for i := range guards.Items {
			for _, c := range guards.Items[i].Status.Conditions {
				if strings.Contains(c.Message, "which is the bound") {
					beyond = append(beyond, guards.Items[i].Name)
					break
				}
			}
		}
		if len(beyond) != 1 {
			return fmt.Errorf("these are: %v", beyond)
		}
		return nil
	})
}
