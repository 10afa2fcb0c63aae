// SPDX-License-Identifier: Apache-2.0

//go:build lifecycle

package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// quiet are objects that the stream leaves alone: what happens to them while the
// webhook is away stays as it is until the assessor looks.
type quiet struct {
	*testing.T
}

// newQuiet has two of them, authorized and stamped.
func newQuiet(t *testing.T) *quiet {
	t.Helper()
	whole(t)
	stamped(t)
	q := &quiet{t}
	must(t, clearObjects(t.Context(), quietNamespace)) // a run that was killed left objects
	t.Cleanup(func() {
		if err := clearObjects(context.WithoutCancel(t.Context()), quietNamespace); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{"kept", "changed"} {
		q.create(name)
	}
	q.await("both are authorized", func(name string, b *v1alpha1.Baseline, fresh, stampedRight bool) bool {
		return b.Status.State == v1alpha1.StateInSync && fresh && stampedRight
	})
	return q
}

// create makes one as the trusted admin.
func (q *quiet) create(name string) {
	q.Helper()
	_, err := cluster.Kubectl(q.Context(), "create", "deployment", name, "--image=registry.invalid/app:v0", "--replicas=0", "-n", quietNamespace)
	must(q.T, err)
}

// foreignWrite has alice, whom the guard does not trust, change one.
func (q *quiet) foreignWrite() {
	q.Helper()
	_, err := cluster.Kubectl(q.Context(), "set", "image", "deployment/changed", "app=registry.invalid/app:foreign", "-n", quietNamespace, "--as", "alice")
	must(q.T, err)
}

// found holds that the assessor has looked at every one since the webhook was
// away, and that it calls those named drifted, and no other.
func (q *quiet) found(drifted ...string) {
	q.Helper()
	unstamped := 0
	q.await(fmt.Sprintf("all are looked at, and drift is found at %v", drifted), func(name string, b *v1alpha1.Baseline, fresh, stampedRight bool) bool {
		if !stampedRight {
			unstamped++
		}
		want := v1alpha1.StateInSync
		if slices.Contains(drifted, name) {
			want = v1alpha1.StateDrifted
		}
		return fresh && b.Status.State == want
	})
	if unstamped == 0 {
		q.Error("nothing was unstamped: the webhook was not away when the quiet objects were written")
	}
}

// await waits until what holds says of every quiet object's Baseline is true.
// fresh means that the Baseline speaks of the very content that is stored.
func (q *quiet) await(what string, holds func(name string, b *v1alpha1.Baseline, fresh, stampedRight bool) bool) {
	q.Helper()
	eventually(q.T, what, func(ctx context.Context) (bool, string) {
		all, saw := true, ""
		for _, o := range observe(ctx, q.T, quietNamespace) {
			var b v1alpha1.Baseline
			if err := cluster.Read(ctx, &b, quietNamespace, "deployments.apps."+o.Name); err != nil {
				return false, err.Error()
			}
			fresh := b.Status.Observed.FullHash == o.Hash
			saw += fmt.Sprintf("%s: %s, fresh %v, stamp right %v, findings %+v; ", o.Name, b.Status.State, fresh, o.Stamp == o.Hash, b.Status.Findings)
			all = holds(o.Name, &b, fresh, o.Stamp == o.Hash) && all
		}
		return all, saw
	})
}

// sweeps is how many sweeps the assessors have completed.
func (q *quiet) sweeps(ctx context.Context) float64 {
	q.Helper()
	list, err := kube.CoreV1().Pods(systemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=assessor"})
	must(q.T, err)
	sum := 0.0
	for _, pod := range list.Items {
		n, err := sample(ctx, pod.Name, "plumbline_sweeps_total", `result="complete"`)
		must(q.T, err)
		sum += n
	}
	return sum
}
