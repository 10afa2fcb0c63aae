// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Resource is a namespaced kind together with where the API server serves it.
type Resource struct {
	GVK schema.GroupVersionKind
	// Plural is the resource's name in paths, e.g. deployments.
	Plural string
}

func (r Resource) path() string {
	if r.GVK.Group == "" {
		return path.Join("/api", r.GVK.Version, r.Plural)
	}
	return path.Join("/apis", r.GVK.Group, r.GVK.Version, r.Plural)
}

// listWatch lists and watches one resource in all namespaces, shrinking each
// object while the response is read, so that no list is ever held in full size.
type listWatch struct {
	client   rest.Interface
	resource Resource
	intake   intake
	// restart is told before each request: what the last one read has come to the store by
	// now, or never does. May be nil.
	restart func()
	// report is told how each request went.
	report func(error)
	// listing is told before a list; may be nil.
	listing func(context.Context, Resource)
	// schemas tells which schema is served; nil where a change of schemas is not looked for.
	schemas *schemas

	mu sync.Mutex
	// listed is the version of the schema of which the last list began.
	listed string
	// watching is the stream that goes on, nil when there is none.
	watching *stream
}

// ListWithContext implements cache.ListerWatcherWithContext.
func (lw *listWatch) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	lw.forgetArrivals()
	lw.beginList(ctx)
	list, err := lw.list(ctx, options)
	lw.report(err)
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (lw *listWatch) forgetArrivals() {
	if lw.restart != nil {
		lw.restart()
	}
}

// beginList tells that a list is about to be made, and notes the schema of before it.
func (lw *listWatch) beginList(ctx context.Context) {
	if lw.listing != nil {
		lw.listing(ctx, lw.resource)
	}
	if lw.schemas == nil {
		return
	}
	version := lw.schemas.readVersion(ctx, lw.resource.GVK)
	lw.mu.Lock()
	defer lw.mu.Unlock()
	lw.listed = version
}

// hasNewSchema tells whether objects may look otherwise now than when they were listed,
// although nothing was written.
func (lw *listWatch) hasNewSchema(ctx context.Context) bool {
	if lw.schemas == nil {
		return false
	}
	version := lw.schemas.readVersion(ctx, lw.resource.GVK)
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.listed == "" { // not known at the list
		lw.listed = version
	}
	return version != "" && version != lw.listed
}

// interruptWatch ends the stream that goes on. The reflector then asks for the next one.
func (lw *listWatch) interruptWatch() {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.watching != nil {
		lw.watching.Stop()
	}
}

func (lw *listWatch) list(ctx context.Context, options metav1.ListOptions) (*ObjectList, error) {
	stream, err := lw.request(options).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", lw.resource.Plural, err)
	}
	defer func() { _ = stream.Close() }() // read to its end or already failed
	list, err := decodeList(stream, lw.resource.GVK, lw.intake)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", lw.resource.Plural, err)
	}
	return list, nil
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (lw *listWatch) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	lw.forgetArrivals()
	options.Watch = true
	if options.SendInitialEvents != nil && *options.SendInitialEvents { // a list in the form of a watch
		lw.beginList(ctx)
	} else if lw.hasNewSchema(ctx) {
		// The answer upon which the reflector lists anew.
		return nil, apierrors.NewResourceExpired("the schema of " + lw.resource.Plural + " has changed")
	}
	ctx, cancel := context.WithCancel(ctx)
	body, err := lw.request(options).Stream(ctx)
	lw.report(err)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watching %s: %w", lw.resource.Plural, err)
	}
	stream := newStream(body, cancel, lw.resource.GVK, lw.intake, lw.report)
	lw.mu.Lock()
	defer lw.mu.Unlock()
	lw.watching = stream
	return stream, nil
}

func (lw *listWatch) request(options metav1.ListOptions) *rest.Request {
	return lw.client.Get().
		AbsPath(lw.resource.path()).
		SetHeader("Accept", "application/json").
		SpecificallyVersionedParams(&options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"})
}

// decodeList reads {"metadata":{…},"items":[…]} item by item.
func decodeList(r io.Reader, gvk schema.GroupVersionKind, in intake) (*ObjectList, error) {
	dec := json.NewDecoder(r)
	list := &ObjectList{}
	if err := expectDelim(dec, '{'); err != nil {
		return nil, err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("reading a list: %w", err)
		}
		switch key {
		case "metadata":
			err = dec.Decode(&list.ListMeta)
		case "items":
			err = decodeItems(dec, gvk, in, list)
		default:
			var skipped json.RawMessage
			err = dec.Decode(&skipped)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %v of a list: %w", key, err)
		}
	}
	return list, expectDelim(dec, '}')
}

func decodeItems(dec *json.Decoder, gvk schema.GroupVersionKind, in intake, list *ObjectList) error {
	if err := expectDelim(dec, '['); err != nil {
		return err
	}
	var raw json.RawMessage
	for dec.More() {
		raw = raw[:0]
		if err := dec.Decode(&raw); err != nil {
			return fmt.Errorf("reading an item: %w", err)
		}
		object, wanted, err := in.take(raw, gvk)
		if err != nil {
			return err
		}
		if wanted {
			list.Items = append(list.Items, *object)
		}
	}
	return expectDelim(dec, ']')
}

func expectDelim(dec *json.Decoder, want json.Delim) error {
	token, err := dec.Token()
	if err != nil {
		return fmt.Errorf("reading a list: %w", err)
	}
	if token != want {
		return fmt.Errorf("reading a list: found %v where %v must be", token, want)
	}
	return nil
}

// contextFree adds the methods without a context that the reflector's
// constructor asks for and does not call.
type contextFree struct{ *listWatch }

// List implements cache.Lister.
func (lw contextFree) List(options metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), options)
}

// Watch implements cache.Watcher.
func (lw contextFree) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), options)
}
