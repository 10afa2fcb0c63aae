// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// changedObjects is how many objects are changed in one iteration.
const changedObjects = 20

// counted are the resources that the assessor writes because an object changed.
var counted = []string{"baselines", "baselines/status", "baselinerevisions", "events"}

// BenchmarkBaselineWrites counts the assessor's writes for one change of an object, by
// the API server's own metric. The reference is the change itself, which is one write.
func BenchmarkBaselineWrites(b *testing.B) {
	w, stop := benchWorld(b)
	defer stop()
	w.trust(b)
	binary := measured{startBinary(b)}
	defer kill(b, binary.Process)
	for i := range changedObjects {
		if err := w.ci.Create(b.Context(), guarded.Deployment(w.namespace, fmt.Sprintf("web-%d", i))); err != nil {
			b.Fatal(err)
		}
	}
	w.awaitState(b, v1alpha1.StateInSync, 1)
	image := func(by client.Client, to string) func(*appsv1.Deployment) error {
		return func(d *appsv1.Deployment) error { return by.Patch(b.Context(), d, guarded.ImagePatch(to)) }
	}
	scale := func(by client.Client, to int) func(*appsv1.Deployment) error {
		return func(d *appsv1.Deployment) error {
			return by.SubResource("scale").Patch(b.Context(), d, guarded.ScalePatch(to))
		}
	}
	generation := int64(1)
	steps := []struct {
		name   string
		change func(*appsv1.Deployment) error
		state  v1alpha1.DriftState
	}{
		{"trusted", image(w.ci, "registry.example/shop:2"), v1alpha1.StateInSync},
		{"untrusted", image(w.alice, "registry.example/evil:1"), v1alpha1.StateDrifted},
		{"put-back", image(w.alice, "registry.example/shop:2"), v1alpha1.StateInSync},
		{"scale", scale(w.alice, 5), v1alpha1.StateDrifted},
		{"scale-back", scale(w.alice, 2), v1alpha1.StateInSync},
	}
	for b.Loop() {
		for _, step := range steps {
			before := w.settledWrites(b)
			for i := range changedObjects {
				if err := step.change(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("web-%d", i)}}); err != nil {
					b.Fatal(err)
				}
			}
			generation++
			w.awaitState(b, step.state, generation)
			after := w.settledWrites(b)
			var line strings.Builder
			for i, resource := range counted {
				fmt.Fprintf(&line, " %.2f %s", (after[i]-before[i])/changedObjects, resource)
			}
			b.Logf("%s: per change%s", step.name, line.String())
			b.ReportMetric((after[0]+after[1]-before[0]-before[1])/changedObjects, step.name+"-writes")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// trust has the guard of the benchmark trust CI and expect the autoscaler.
func (w *benchEnv) trust(b *testing.B) {
	b.Helper()
	g := &v1alpha1.SpecGuard{}
	if err := admin.Get(b.Context(), client.ObjectKey{Namespace: w.namespace, Name: "workloads"}, g); err != nil {
		b.Fatal(err)
	}
	g.Spec = guarded.Guard(w.namespace, guarded.ExpectAutoscaler).Spec
	if err := admin.Update(b.Context(), g); err != nil {
		b.Fatal(err)
	}
}

// awaitState waits until all Baselines have a state for a generation.
func (w *benchEnv) awaitState(b *testing.B, state v1alpha1.DriftState, generation int64) {
	b.Helper()
	poll.Until(b, 3*patience, fmt.Sprintf("generation %d of all objects is %s", generation, state), func() error {
		var list v1alpha1.BaselineList
		if err := admin.List(b.Context(), &list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		n := 0
		for i := range list.Items {
			if s := &list.Items[i].Status; s.State == state && s.Observed.Generation >= generation {
				n++
			}
		}
		if n != changedObjects {
			return fmt.Errorf("%d of %d are", n, changedObjects)
		}
		return nil
	})
}

// settledWrites are the writes that the API server has counted so far, when their number
// has stayed the same for several looks.
func (w *benchEnv) settledWrites(b *testing.B) []float64 {
	b.Helper()
	kube, err := kubernetes.NewForConfig(rest.CopyConfig(config))
	if err != nil {
		b.Fatal(err)
	}
	var last []float64
	same := 0
	poll.Until(b, 3*patience, "the number of writes stays the same", func() error {
		raw, err := kube.RESTClient().Get().AbsPath("/metrics").DoRaw(b.Context())
		if err != nil {
			return err
		}
		now, err := writesOn(string(raw))
		if err != nil {
			return err
		}
		if same++; !slices.Equal(now, last) {
			same, last = 0, now
		}
		if same < 8 {
			return fmt.Errorf("it is %v since %d looks", now, same)
		}
		return nil
	})
	return last
}

// writesOn reads the writes of each counted resource from a page of metrics.
func writesOn(page string) ([]float64, error) {
	var out []float64
	for _, name := range counted {
		resource, subresource, _ := strings.Cut(name, "/")
		sum := 0.0
		for _, verb := range []string{"POST", "PUT", "PATCH", "APPLY", "DELETE"} {
			n, err := harness.SumSamples(page, "apiserver_request_total",
				fmt.Sprintf("resource=%q", resource), fmt.Sprintf("subresource=%q", subresource), fmt.Sprintf("verb=%q", verb))
			if err != nil {
				return nil, err
			}
			sum += n
		}
		out = append(out, sum)
	}
	return out, nil
}
