// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/quantile"
)

const (
	// tenantObjects is how many objects the guards of the hostile tenant select.
	tenantObjects = 100
	// turn is how many drifts are measured before the tenant changes its behavior, so
	// that a busy minute of the machine does not count for one behavior alone.
	turn = 20
)

// BenchmarkDetectionBesideATenant measures from the answer to a write until its drift is
// in the status of the Baseline, while a tenant is quiet, writes a ConfigMap in a
// loop, edits its guards in a loop, or writes its guarded objects in a loop. The ConfigMap is
// the reference: its writes cost the API server as much, and concern no guard.
func BenchmarkDetectionBesideATenant(b *testing.B) {
	w, stop := benchWorld(b)
	defer stop()
	binary := measured{startBinary(b)}
	defer kill(b, binary.Process)
	w.benchDeploy(b, turn, 4)
	t := newTenant(b)
	binary.await(b, turn+tenantObjects)
	events, err := watcher(b, w.namespace)
	if err != nil {
		b.Fatal(err)
	}
	defer events.Stop()
	behaviors := []struct {
		name string
		edit func(context.Context, int) error
	}{{"quiet", nil}, {"configmap", t.editConfigMap}, {"guards", t.editGuard}, {"objects", t.editObject}}
	took, edits, number := map[string][]time.Duration{}, map[string]int{}, 0
	for b.Loop() {
		for _, behavior := range behaviors {
			end := t.behave(b, behavior.edit)
			for range turn {
				took[behavior.name] = append(took[behavior.name], w.detect(b, events, number, turn))
				number++
			}
			edits[behavior.name] += end()
		}
	}
	for _, behavior := range behaviors {
		quantile.Report(b, behavior.name, took[behavior.name])
		b.Logf("%s: %d drifts, %d edits of the tenant", behavior.name, len(took[behavior.name]), edits[behavior.name])
	}
	b.ReportMetric(0, "ns/op")
}

// hostileTenant has as many guards as a namespace may have, and objects of its own.
type hostileTenant struct {
	namespace string
	config    *corev1.ConfigMap
}

func newTenant(b *testing.B) *hostileTenant {
	b.Helper()
	w, _ := benchWorld(b) // all guards are removed at once, see below
	t := &hostileTenant{namespace: w.namespace}
	t.config = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "edited"}}
	if err := admin.Create(b.Context(), t.config); err != nil {
		b.Fatal(err)
	}
	for i := 1; i < specguard.MaxNamespaceGuards; i++ {
		if err := admin.Create(b.Context(), t.guard(i)); err != nil {
			b.Fatal(err)
		}
	}
	b.Cleanup(func() {
		if err := admin.DeleteAllOf(context.Background(), &v1alpha1.SpecGuard{}, client.InNamespace(t.namespace)); err != nil {
			b.Error(err)
		}
	})
	for i := range tenantObjects {
		if err := w.ci.Create(b.Context(), guarded.Deployment(t.namespace, fmt.Sprintf("mine-%d", i))); err != nil {
			b.Fatal(err)
		}
	}
	return t
}

func (t *hostileTenant) guard(i int) *v1alpha1.SpecGuard {
	return guarded.Guard(t.namespace, func(g *v1alpha1.SpecGuard) { g.Name = fmt.Sprintf("mine-%d", i) })
}

// behave has the tenant edit in a loop until the returned function is called, which
// returns the number of edits.
func (t *hostileTenant) behave(b *testing.B, edit func(context.Context, int) error) (end func() int) {
	b.Helper()
	if edit == nil {
		return func() int { return 0 }
	}
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	edits := 0
	wg.Go(func() {
		for ctx.Err() == nil {
			if err := edit(ctx, edits); err != nil && ctx.Err() == nil {
				b.Errorf("editing as the tenant: %v", err)
				return
			}
			edits++
		}
	})
	return func() int {
		cancel()
		wg.Wait()
		return edits
	}
}

func (t *hostileTenant) editConfigMap(ctx context.Context, i int) error {
	return admin.Patch(ctx, t.config.DeepCopy(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"edit":"%d"}}`, i)))
}

// editGuard changes which writers a guard trusts, so that all objects of the tenant have
// to be judged anew.
func (t *hostileTenant) editGuard(ctx context.Context, i int) error {
	g := t.guard(1 + i%(specguard.MaxNamespaceGuards-1))
	return admin.Patch(ctx, g, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"trustedWriters":{"users":["user-%d"]}}}`, i)))
}

// editObject changes a guarded object, so that each of the tenant's objects has news.
func (t *hostileTenant) editObject(ctx context.Context, i int) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: fmt.Sprintf("mine-%d", i%tenantObjects)}}
	return admin.Patch(ctx, d, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"minReadySeconds":%d}}`, i%1000)))
}
