// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/quantile"
)

// BenchmarkPodsThatComeAndGo measures the price of pods under guard: a controller makes pods (PLUMBLINE_BENCH_OBJECTS,
// 500 if unset), each gets the statuses of a start, and goes. Beside it are the same
// pods where the guard names Deployments alone, and where no policy looks at the namespace.
func BenchmarkPodsThatComeAndGo(b *testing.B) {
	n := benchObjects(b, 500)
	for _, variant := range []struct {
		name, namespace string
		change          func(*v1alpha1.SpecGuard)
	}{
		{"guarded", "", overRuns},
		{"unguarded", "", func(*v1alpha1.SpecGuard) {}},
		{"excluded", "kube-public", nil},
	} {
		b.Run(variant.name, func(b *testing.B) {
			w, stop := podsWorld(b, variant.namespace, variant.change)
			defer stop()
			p := measured{startBinary(b)}
			defer kill(b, p.Process)
			if variant.change != nil {
				w.benchDeploy(b, 1, 1)
				p.await(b, 1)
			}
			before := p.cpu(b)
			var took []time.Duration
			for b.Loop() {
				took = append(took, w.comeAndGo(b, n)...)
			}
			quantile.Report(b, "creation", took)
			b.ReportMetric((p.cpu(b)-before)*1e6/float64(len(took)), "assessor-µs/pod")
			now, peak := p.memory(b)
			b.ReportMetric(now, "rss-MiB")
			b.ReportMetric(peak, "peak-MiB")
			b.ReportMetric(float64(w.countBaselines(b)), "baselines")
		})
	}
}

// podsWorld is a namespace under a guard, or an existing one that no guard covers.
func podsWorld(b *testing.B, existing string, change func(*v1alpha1.SpecGuard)) (*benchEnv, func()) {
	b.Helper()
	if existing == "" {
		w, stop := benchWorld(b)
		g := guarded.Guard(w.namespace)
		change(g)
		patched := &v1alpha1.SpecGuard{}
		if err := admin.Get(b.Context(), client.ObjectKeyFromObject(g), patched); err != nil {
			b.Fatal(err)
		}
		patched.Spec.Resources = g.Spec.Resources
		if err := admin.Update(b.Context(), patched); err != nil {
			b.Fatal(err)
		}
		return w, stop
	}
	err := client.IgnoreAlreadyExists(admin.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: existing}}))
	if err != nil {
		b.Fatal(err)
	}
	return &benchEnv{namespace: existing}, func() {}
}

// comeAndGo makes n pods of a ReplicaSet, eight at a time, and returns how long each creation took.
func (w *benchEnv) comeAndGo(b *testing.B, n int) []time.Duration {
	b.Helper()
	controller, err := cluster.As("system:serviceaccount:kube-system:replicaset-controller")
	if err != nil {
		b.Fatal(err)
	}
	template := guarded.Deployment("", "web").Spec.Template
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "web-"}}
	set.Spec.Replicas, set.Spec.Template = new(int32), template
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: template.Labels}
	if err := admin.Create(b.Context(), set); err != nil {
		b.Fatal(err)
	}
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: new(true)}
	took := make([]time.Duration, n)
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(8)
	for i := range n {
		group.Go(func() (err error) {
			took[i], err = w.liveOnce(ctx, controller, fmt.Sprintf("%s-%d", set.Name, i), template, owner)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return took
}

// liveOnce makes a pod, writes the statuses of its start, and removes it.
func (w *benchEnv) liveOnce(ctx context.Context, controller client.Client, name string, template corev1.PodTemplateSpec, owner metav1.OwnerReference) (time.Duration, error) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: template.Labels, OwnerReferences: []metav1.OwnerReference{owner}}, Spec: template.Spec}
	began := time.Now()
	if err := controller.Create(ctx, p); err != nil {
		return 0, err
	}
	took := time.Since(began)
	for _, status := range []string{`{"status":{"phase":"Pending"}}`, `{"status":{"phase":"Running","podIP":"192.0.2.1"}}`, `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`} {
		if err := admin.Status().Patch(ctx, p, client.RawPatch("application/merge-patch+json", []byte(status))); err != nil {
			return 0, err
		}
	}
	return took, admin.Delete(ctx, p, client.GracePeriodSeconds(0))
}

// countBaselines counts the Baselines of the namespace.
func (w *benchEnv) countBaselines(b *testing.B) int {
	b.Helper()
	var list v1alpha1.BaselineList
	if err := admin.List(b.Context(), &list, client.InNamespace(w.namespace)); err != nil {
		b.Fatal(err)
	}
	return len(list.Items)
}
