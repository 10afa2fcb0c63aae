// SPDX-License-Identifier: Apache-2.0

//go:build integration

package gatewayapi

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	connector "github.com/plumbline-dev/plumbline/internal/connector/gatewayapi"
)

// line is the connection of the connector to the API server, which a test can cut.
type line struct {
	client.Client
	mu    sync.Mutex
	cut   error
	reads int
}

func (l *line) set(cut error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
}

func (l *line) state() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut
}

// count counts one read, and returns how many there were.
func (l *line) count(reads int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads += reads
	return l.reads
}

func (l *line) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := l.state(); err != nil {
		return err
	}
	l.count(1)
	return l.Client.Get(ctx, key, object, options...)
}

func (l *line) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if err := l.state(); err != nil {
		return err
	}
	return l.Client.Patch(ctx, object, patch, options...)
}

// edges is an implementation of Gateway API: it reports on each generation of the routes of a namespace.
type edges struct {
	mu   sync.Mutex
	away bool
	// refuses has the reason by the name of a parent.
	refuses map[string]string
}

func (e *edges) set(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

// run reports until the context ends.
func (e *edges) run(ctx context.Context, t *testing.T, namespace string) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := e.report(ctx, namespace); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			t.Error(err)
			return
		}
	}
}

func (e *edges) report(ctx context.Context, namespace string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.away {
		return nil
	}
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(connector.HTTPRoute)
	if err := admin.List(ctx, all, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range all.Items {
		was, _, _ := unstructured.NestedSlice(all.Items[i].Object, "status", "parents")
		is := e.statusOf(&all.Items[i])
		if fmt.Sprint(was) == fmt.Sprint(is) {
			continue
		}
		if err := unstructured.SetNestedSlice(all.Items[i].Object, is, "status", "parents"); err != nil {
			return err
		}
		if err := admin.Status().Update(ctx, &all.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// statusOf returns the status of each parent for the generation of a route.
func (e *edges) statusOf(route *unstructured.Unstructured) (parents []any) {
	refs, _, _ := unstructured.NestedSlice(route.Object, "spec", "parentRefs")
	for _, ref := range refs {
		name := ref.(map[string]any)["name"].(string)
		condition := func(kind, status, reason string) any {
			return map[string]any{"type": kind, "status": status, "reason": reason, "message": "", "observedGeneration": route.GetGeneration(), "lastTransitionTime": "2030-01-01T00:00:00Z"}
		}
		accepted := condition("Accepted", "True", "Accepted")
		if reason := e.refuses[name]; reason != "" {
			accepted = condition("Accepted", "False", reason)
		}
		parents = append(parents, map[string]any{
			"controllerName": "example.com/gateway", "parentRef": ref, "conditions": []any{accepted, condition("ResolvedRefs", "True", "ResolvedRefs")},
		})
	}
	return parents
}
