// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

const (
	cacheBytes = "plumbline_assessor_object_cache_bytes{}"
	overLimit  = "plumbline_assessor_object_cache_partial_objects{reason=limit}"
	unguarded  = "plumbline_assessor_object_cache_partial_objects{reason=unguarded}"
	liveReads  = "plumbline_assessor_content_reads_total{}"
)

func withObjectCache(bytes int64) option {
	return func(s *assessor.Setup) { s.ObjectCacheBytes = bytes }
}

// figure is one sample of an assessor.
func (w *world) figure(p *process, name string) float64 {
	w.t.Helper()
	all, err := p.figures()
	w.Must(err)
	value, ok := all[name]
	if !ok {
		w.t.Fatalf("there is no sample %s", name)
	}
	return value
}

// removeAtEnd removes the deployments of a namespace when the test ends. The assessors of
// other tests would list the padded ones, too.
func (w *world) removeAtEnd() {
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := admin.DeleteAllOf(ctx, &appsv1.Deployment{}, client.InNamespace(w.namespace)); err != nil {
			w.t.Errorf("removing the deployments: %v", err)
		}
	})
}

// pad makes a deployment of 480 KiB that no compression makes much smaller.
func (w *world) pad(name, padding string) {
	w.t.Helper()
	d := guarded.Deployment(w.namespace, name)
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PAD", Value: padding}}
	w.Must(w.As(ci).Create(w.Ctx(), d))
}

// M4 of the guard's review: 400 padded Deployments passed the memory limit, and the
// assessor was killed for the whole cluster.
func TestPaddedObjectsOfOneTenantDoNotFillTheMemory(t *testing.T) {
	rotation.Share(t, 3)
	const budget, objects = 2 << 20, 12
	padded, other := newWorld(t), newWorld(t)
	p := start(t, withObjectCache(budget))
	padded.removeAtEnd()
	padded.UnderGuard()
	other.UnderGuard()
	other.Deploy(ci, "small")
	other.UntilIs("small", "InSync")
	padding := incompressible()[:480<<10]
	name := func(i int) string { return fmt.Sprintf("padded-%02d", i) }
	for i := range objects {
		padded.pad(name(i), padding)
	}
	bounded := func(p *process) {
		t.Helper()
		for i := range objects {
			padded.UntilIs(name(i), "InSync")
		}
		if kept, partial := padded.figure(p, cacheBytes), padded.figure(p, overLimit); kept > budget || partial < objects/2 {
			t.Errorf("%.0f bytes are kept of at most %d, %.0f objects are partial", kept, budget, partial)
		}
	}
	bounded(p)
	padded.SetImage(alice, name(3), "registry.example/evil:1")
	padded.UntilIs(name(3), "Drifted: Changed "+imagePath+" by alice (Untrusted, WriterStamp)")
	padded.SetImage(ci, name(4), "registry.example/shop:2")
	padded.Until(name(4), "the image of CI is authorized", func(b *v1alpha1.Baseline) error {
		if n := guarded.Authorized(b); n != 2 || b.Status.State != v1alpha1.StateInSync {
			return fmt.Errorf("revision %d is authorized, %s", n, guarded.Describe(b))
		}
		return nil
	})

	p.Halt(t)
	unwatched := newWorld(t) // no guard comes to this namespace
	unwatched.removeAtEnd()
	unwatched.pad("web", padding)
	p = start(t, withObjectCache(budget))
	other.Deploy(ci, "witness")
	other.UntilIs("witness", "InSync")
	padded.SetImage(alice, name(3), "registry.example/evil:2") // its first version since the list
	for i := range objects {
		if i == 3 {
			continue
		}
		padded.UntilIs(name(i), "InSync")
	}
	padded.SetImage(alice, name(5), "registry.example/evil:1")
	padded.UntilIs(name(5), "Drifted: Changed "+imagePath+" by alice (Untrusted, WriterStamp)")
	if kept, partial := padded.figure(p, cacheBytes), padded.figure(p, overLimit); kept > budget || partial < objects/2 {
		t.Errorf("after a restart, %.0f bytes are kept of at most %d, %.0f objects are partial", kept, budget, partial)
	}
	if n := padded.figure(p, unguarded); n < 1 {
		t.Errorf("the content of an object that no guard covers is kept (%.0f are not)", n)
	}
	before := other.figure(p, liveReads)
	other.SetImage(alice, "small", "registry.example/evil:1")
	other.UntilIs("small", "Drifted: Changed "+imagePath+" by alice (Untrusted, WriterStamp)")
	if after := other.figure(p, liveReads); after != before {
		t.Errorf("the object of a small namespace was read live: %.0f reads, then %.0f", before, after)
	}
}
