// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// frame is one line of a watch response.
type frame struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

// stream turns a watch response into events of Objects.
type stream struct {
	body   io.ReadCloser
	cancel context.CancelFunc
	gvk    schema.GroupVersionKind
	intake intake
	report func(error)
	events chan watch.Event
	done   chan struct{}
	stop   sync.Once
}

var _ watch.Interface = (*stream)(nil)

func newStream(body io.ReadCloser, cancel context.CancelFunc, gvk schema.GroupVersionKind,
	in intake, report func(error),
) *stream {
	s := &stream{
		body: body, cancel: cancel, gvk: gvk, intake: in, report: report,
		events: make(chan watch.Event, 64), done: make(chan struct{}),
	}
	go s.run()
	return s
}

// Stop implements watch.Interface.
func (s *stream) Stop() {
	s.stop.Do(func() {
		close(s.done)
		s.cancel()
	})
}

// ResultChan implements watch.Interface.
func (s *stream) ResultChan() <-chan watch.Event { return s.events }

func (s *stream) run() {
	defer close(s.events)
	defer func() { _ = s.body.Close() }() // nothing can be done about it
	defer s.cancel()
	dec := json.NewDecoder(s.body)
	var f frame
	for {
		f.Object = f.Object[:0]
		if err := dec.Decode(&f); err != nil {
			s.end(err)
			return
		}
		event, wanted, err := s.event(f)
		if err != nil {
			s.end(err)
			return
		}
		if !wanted {
			continue
		}
		if !s.send(event) {
			return
		}
	}
}

// send delivers one event unless the watch was stopped.
func (s *stream) send(event watch.Event) bool {
	select {
	case s.events <- event:
		return true
	case <-s.done:
		return false
	}
}

// end tells why the stream ended. A connection that ends or breaks loses
// nothing: the reflector goes on from the last version it saw, and transitions
// stay contiguous. What cannot be understood would come again, so it becomes an
// error event, upon which everything is listed anew.
func (s *stream) end(err error) {
	select {
	case <-s.done:
		return
	default:
	}
	if !isMalformed(err) {
		return
	}
	s.report(err)
	status := apierrors.NewInternalError(fmt.Errorf("reading a watch of %s: %w", s.gvk.Kind, err)).Status()
	s.send(watch.Event{Type: watch.Error, Object: &status})
}

// errMalformed marks what the API server sent and we do not understand.
var errMalformed = errors.New("not understood")

func isMalformed(err error) bool {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	return errors.Is(err, errMalformed) || errors.As(err, &syntax) || errors.As(err, &mismatch)
}

func (s *stream) event(f frame) (event watch.Event, wanted bool, err error) {
	switch f.Type {
	case watch.Error:
		var status metav1.Status
		if err := json.Unmarshal(f.Object, &status); err != nil {
			return watch.Event{}, false, fmt.Errorf("decoding a status: %w", err)
		}
		return watch.Event{Type: watch.Error, Object: &status}, true, nil
	case watch.Bookmark:
		object, err := decodeBodiless(f.Object)
		return watch.Event{Type: watch.Bookmark, Object: object}, true, err
	case watch.Added, watch.Modified, watch.Deleted:
		object, wanted, err := s.intake.take(f.Object, s.gvk)
		if err != nil {
			return watch.Event{}, false, err
		}
		return watch.Event{Type: f.Type, Object: runtime.Object(object)}, wanted, nil
	}
	return watch.Event{}, false, fmt.Errorf("%w: unknown watch event %q", errMalformed, f.Type)
}
