// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// longGone is a version of before the kind of widgets was made, so the API server
// has no events of widgets since then.
const longGone = "1"

// widgets are guarded in this test because the API server keeps all events of
// deployments, of which it knew from its start, for longer than a test takes.
var widgets = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}

func (w *world) widget(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(widgets)
	u.SetNamespace(w.namespace)
	u.SetName(name)
	return u
}

func (w *world) makeWidget(user, name, color string) {
	w.t.Helper()
	u := w.widget(name)
	u.Object["spec"] = map[string]any{"color": color}
	w.Must(w.As(user).Create(w.Ctx(), u))
}

func (w *world) setWidget(user, name, field, value string) {
	w.t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{%q:%q}}`, field, value))
	w.Must(w.As(user).Patch(w.Ctx(), w.widget(name), patch))
}

// widgetWorld has the kind of widgets, and a guard of them in force.
func widgetWorld(t *testing.T) (*world, *process) {
	t.Helper()
	w := newWorld(t)
	w.Resource = schema.GroupResource{Group: widgets.Group, Resource: "widgets"}
	p := start(t)
	w.InstallKind(widgets.Group, widgets.Kind, "widgets", apiextensions.NamespaceScoped)
	// Each client discovers kinds by itself, and a new one is told late.
	w.Eventually("a new client can write widgets", func() error {
		return w.As(ci).Create(w.Ctx(), w.widget("probe"), client.DryRunAll)
	})
	w.UnderGuard(func(g *v1alpha1.SpecGuard) {
		g.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "example.org/v1", Kind: "Widget"}}
	})
	return w, p
}

// forceRelist cuts the watches, and has the watch of widgets go on from a
// version that is long gone once between is done. It returns after the API
// server was asked for the whole list again.
func (w *world) forceRelist(p *process, between func()) {
	w.t.Helper()
	blind, done := make(chan struct{}), make(chan struct{})
	var held, lists atomic.Int32
	p.faults.through(func(r *http.Request) *http.Request {
		query := r.URL.Query()
		switch {
		case !strings.HasSuffix(r.URL.Path, "/widgets"):
		case query.Get("watch") == "" || query.Get("sendInitialEvents") != "":
			lists.Add(1)
		case held.Add(1) == 1:
			close(blind)
			<-done
			r = r.Clone(r.Context())
			query.Set("resourceVersion", longGone)
			r.URL.RawQuery = query.Encode()
		}
		return r
	})
	defer p.faults.through(nil)
	if p.faults.breakWatches() == 0 {
		w.t.Fatal("no watch was open")
	}
	func() {
		defer close(done)
		w.await("the assessor watches anew", blind)
		if n := lists.Load(); n != 0 {
			w.t.Fatalf("a broken connection alone led to %d lists", n)
		}
		between()
	}()
	w.Eventually("everything is listed anew", func() error {
		if lists.Load() == 0 {
			return fmt.Errorf("it is not")
		}
		return nil
	})
}

// mustBeGone checks what forceRelist relies on: the API server's own 410.
func (w *world) mustBeGone(version string) {
	w.t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme})
	w.Must(err)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(widgets)
	events, err := c.Watch(w.Ctx(), list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
	w.Must(err)
	defer events.Stop()
	if e := <-events.ResultChan(); e.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
		w.t.Fatalf("a watch from version %s begins with %+v, want 410 Expired", version, e)
	}
}

// TestARelistHidesNobody has the watch end with 410 Gone, with writes between
// that no event tells of: the list shows only what they led to. Values are text,
// because a number of a custom resource may also come through its /scale, which
// is not stamped.
func TestARelistHidesNobody(t *testing.T) {
	tests := map[string]struct {
		write      func(w *world, name string)
		want       string
		authorized int64
	}{
		"a person": {
			write:      func(w *world, name string) { w.setWidget(alice, name, "extra", "x") },
			want:       "Drifted: Added /spec/extra by alice (Untrusted, WriterStamp)",
			authorized: 1,
		},
		"ci alone": {
			write:      func(w *world, name string) { w.setWidget(ci, name, "color", "blue") },
			want:       "InSync",
			authorized: 2,
		},
		// Two writes lie behind one stamp: the last writer's name is told as a guess
		// and excuses nothing.
		"a person and then ci": {
			write: func(w *world, name string) {
				w.setWidget(alice, name, "extra", "x")
				w.setWidget(ci, name, "color", "blue")
			},
			want: "Drifted: Changed /spec/color by " + ci + " (Unknown, WriterStamp); " +
				"Added /spec/extra by " + ci + " (Unknown, WriterStamp)",
			authorized: 1,
		},
		"a person who takes it back": {
			write: func(w *world, name string) {
				w.setWidget(alice, name, "color", "red")
				w.setWidget(alice, name, "color", "green")
			},
			want:       "InSync",
			authorized: 1,
		},
		"a person who deletes": {
			write:      func(w *world, name string) { w.Must(w.As(alice).Delete(w.Ctx(), w.widget(name))) },
			want:       "Missing: Removed object by ? (Unknown, None)",
			authorized: 1,
		},
		"a person who deletes and creates": {
			write: func(w *world, name string) {
				w.Must(w.As(alice).Delete(w.Ctx(), w.widget(name)))
				w.makeWidget(alice, name, "red")
			},
			want:       "Drifted: Changed /spec/color by alice (Untrusted, WriterStamp)",
			authorized: 1,
		},
		"nobody": {write: func(*world, string) {}, want: "InSync", authorized: 1},
	}
	w, p := widgetWorld(t)
	w.mustBeGone(longGone)
	names := map[string]string{}
	for who := range tests {
		names[who] = strings.ReplaceAll(who, " ", "-")
		w.makeWidget(ci, names[who], "green")
		w.UntilIs(names[who], "InSync")
	}
	w.forceRelist(p, func() {
		for who, tc := range tests {
			tc.write(w, names[who])
		}
	})
	// The list is dealt with once an object made after it is.
	w.makeWidget(ci, "witness", "green")
	w.UntilIs("witness", "InSync")
	for who, tc := range tests {
		t.Run(who, func(t *testing.T) {
			w := w.in(t)
			b := w.UntilIs(names[who], tc.want)
			if n := guarded.Authorized(b); n != tc.authorized {
				t.Errorf("authorized is number %d, want %d", n, tc.authorized)
			}
		})
	}
	// Afterwards every transition counts one by one again.
	w.setWidget(bob, names["nobody"], "extra", "x")
	w.setWidget(ci, names["nobody"], "color", "blue")
	w.Until(names["nobody"], "the watch goes on", func(b *v1alpha1.Baseline) error {
		if guarded.Authorized(b) != 2 {
			return fmt.Errorf("authorized is number %d", guarded.Authorized(b))
		}
		return wantFindings(b, 1, bob)
	})
}
