// SPDX-License-Identifier: Apache-2.0

//go:build integration

package skew

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stream has a user write objects without a pause.
type stream struct {
	stop context.CancelFunc
	done sync.WaitGroup
	// writes counts the answers without an error.
	writes int
	err    error
}

// startStream copies the objects that people write, and writes the copies one after the
// other until the stream is stopped or a write fails.
func (w *world) startStream(objects []*unstructured.Unstructured) *stream {
	w.t.Helper()
	var copies []*unstructured.Unstructured
	for _, o := range objects {
		if creators[o.GetKind()] != "" || o.GetKind() == "RemediationRequest" || o.GetKind() == "GuardDefaults" {
			continue
		}
		o = o.DeepCopy()
		unstructured.RemoveNestedField(o.Object, "status")
		o.SetResourceVersion("")
		o.SetUID("")
		o.SetName(o.GetName() + "-busy")
		must(w.t, w.clientOf("").Create(w.t.Context(), o))
		copies = append(copies, o)
	}
	user := w.clientOf("")
	ctx, cancel := context.WithCancel(w.t.Context())
	s := &stream{stop: cancel}
	s.done.Go(func() { s.writeObjects(ctx, user, copies) })
	w.t.Cleanup(cancel)
	return s
}

func (s *stream) writeObjects(ctx context.Context, user client.Client, objects []*unstructured.Unstructured) {
	for {
		for _, o := range objects {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.org/write":"%d"}}}`, s.writes)
			err := user.Patch(ctx, o.DeepCopy(), client.RawPatch("application/merge-patch+json", patch))
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				s.err = fmt.Errorf("write %d, to %s %s: %w", s.writes, o.GetKind(), o.GetName(), err)
				return
			}
			s.writes++
		}
	}
}

// checkStream ends a stream, and fails the test if the API server refused a write.
func (w *world) checkStream(s *stream) {
	w.t.Helper()
	s.stop()
	s.done.Wait()
	if s.err != nil {
		w.t.Error(s.err)
	}
	w.t.Logf("%d writes by users", s.writes)
	if s.writes == 0 {
		w.t.Error("the stream wrote no object")
	}
}
