// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// history is every version of the Baselines of a namespace, as the API server
// tells them: what was said for a moment was said.
type history struct {
	t *testing.T

	mu       sync.Mutex
	versions []v1alpha1.Baseline
}

// record begins to write down; it ends with the test, or by stop.
func (w *world) record() (h *history, stop func()) {
	w.t.Helper()
	c, err := client.NewWithWatch(w.c.Config, client.Options{Scheme: scheme.Scheme})
	w.Must(err)
	h = &history{t: w.t}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { h.run(ctx, c, w.Name) })
	stop = func() { cancel(); running.Wait() }
	w.t.Cleanup(stop)
	return h, stop
}

// run watches until ctx ends, over any number of broken connections.
func (h *history) run(ctx context.Context, c client.WithWatch, namespace string) {
	version := ""
	for ctx.Err() == nil {
		options := &client.ListOptions{Namespace: namespace, Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}}
		events, err := c.Watch(ctx, &v1alpha1.BaselineList{}, options)
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond): // the API server is away
			}
			continue
		}
		version = h.take(events, version)
	}
}

// take writes down what a watch tells, and returns where to go on.
func (h *history) take(events watch.Interface, version string) string {
	defer events.Stop()
	for e := range events.ResultChan() {
		switch b := e.Object.(type) {
		case *v1alpha1.Baseline:
			version = b.ResourceVersion
			if e.Type == watch.Added || e.Type == watch.Modified {
				h.mu.Lock()
				h.versions = append(h.versions, *b)
				h.mu.Unlock()
			}
		default:
			if err := apierrors.FromObject(e.Object); apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				// Begin anew: what is there now comes again, what was between is lost.
				return ""
			}
		}
	}
	return version
}

// of are the versions of one object's Baseline, equal ones in a row once.
func (h *history) of(name string) []v1alpha1.Baseline {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []v1alpha1.Baseline
	for i := range h.versions {
		if h.versions[i].Spec.Target.Name == name {
			out = append(out, h.versions[i])
		}
	}
	return slices.CompactFunc(out, func(a, b v1alpha1.Baseline) bool { return a.ResourceVersion == b.ResourceVersion })
}

// only checks that a Baseline never read like anything else, and that what was
// authorized only ever moved forward, one by one. A Baseline without a state
// says nothing yet.
func (h *history) only(name string, allowed ...string) {
	h.t.Helper()
	var told []string
	last := int64(0)
	for _, b := range h.of(name) {
		if b.Status.State != "" && !slices.Contains(allowed, guarded.Describe(&b)) {
			h.t.Errorf("the baseline of %s read %q for a moment; allowed are %q", name, guarded.Describe(&b), allowed)
		}
		n := guarded.Authorized(&b)
		if n < last || n > last+1 && last > 0 {
			h.t.Errorf("the authorized number of %s went from %d to %d", name, last, n)
		}
		last = n
		told = append(told, fmt.Sprintf("%d %s", n, guarded.Describe(&b)))
	}
	if len(told) == 0 {
		h.t.Errorf("nothing was recorded of %s", name)
	}
	if h.t.Failed() {
		h.t.Logf("%s: %s", name, strings.Join(slices.Compact(told), " | "))
	}
}
