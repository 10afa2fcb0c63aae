// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ByID names an object.
type ByID struct {
	ID          string `path:"id" maxLength:"317" doc:"The uid, the name of an object of the whole cluster, or NAMESPACE.NAME."`
	IfNoneMatch string `header:"If-None-Match" doc:"ETags that the caller has."`
}

// got is the answer of an operation about one object.
type got[W any] struct {
	ETag string `header:"ETag" doc:"The strong ETag of the representation."`
	Body W
}

// listed is a page of a list.
type listed[W any] struct {
	ETag string `header:"ETag" doc:"The strong ETag of the page."`
	Link string `header:"Link" doc:"The next page, rel=\"next\"; absent on the last one."`
	Body []W
}

// list answers with a page of the objects that are kept. within is the Environment that is asked for;
// nil for a list that takes none.
func list[T client.Object, W any](
	ctx context.Context, s *server, p *Page, from *source[T], namespace string, within *InEnvironment,
	keep func(T, *wire.Uids) bool, show func(T, *wire.Uids) W,
) (*listed[W], error) {
	objects, uids, err := selected(ctx, s, from, namespace, within, keep)
	if err != nil {
		return nil, err
	}
	return paged(p, objects, func(o T) place { return placeOf(o) }, func(o T) W { return show(o, uids) })
}

// selected reads the objects that are kept, with the uids that they are shown with.
func selected[T client.Object](
	ctx context.Context, s *server, from *source[T], namespace string, within *InEnvironment, keep func(T, *wire.Uids) bool,
) ([]T, *wire.Uids, error) {
	objects, err := from.all(ctx, s.cluster, namespace)
	if err != nil {
		return nil, nil, err
	}
	uids, withheld, err := readUids(ctx, s.cluster, from.withNamespaces)
	if err != nil {
		return nil, nil, err
	}
	// An empty list would say that there is no such object.
	if withheld != nil && within != nil && (from.withNamespaces && within.EnvironmentID != "" || uidForm.MatchString(within.EnvironmentID)) {
		return nil, nil, withheld
	}
	kept := objects[:0]
	for _, o := range objects {
		if keep(o, uids) {
			kept = append(kept, o)
		}
	}
	return kept, uids, nil
}

// paged answers with a page of items, each at its place.
func paged[T, W any](p *Page, items []T, at func(T) place, show func(T) W) (*listed[W], error) {
	items, cursor, err := cut(p, items, at)
	if err != nil {
		return nil, err
	}
	out := &listed[W]{Link: p.next(cursor), Body: make([]W, 0, len(items))}
	for _, item := range items {
		out.Body = append(out.Body, show(item))
	}
	if out.ETag, err = tagOf(struct {
		Body []W
		Link string
	}{out.Body, out.Link}); err != nil {
		return nil, err
	}
	if matches(p.IfNoneMatch, out.ETag) {
		return nil, notModified(out.ETag)
	}
	return out, nil
}

// all keeps each object of a list.
func all[T client.Object](T, *wire.Uids) bool { return true }

// without has an object shown that needs no uids of others.
func without[T client.Object, W any](show func(T) W) func(T, *wire.Uids) W {
	return func(o T, _ *wire.Uids) W { return show(o) }
}

// find reads an object, and the uids that it is shown with.
func find[T client.Object](ctx context.Context, s *server, from *source[T], id string) (T, *wire.Uids, error) {
	object, err := from.one(ctx, s.cluster, id)
	if err != nil {
		return object, nil, err
	}
	uids, _, err := readUids(ctx, s.cluster, from.withNamespaces)
	return object, uids, err
}

// show answers with an object that needs no uids of others.
func show[T client.Object, W any](ctx context.Context, s *server, in *ByID, from *source[T], show func(T) W) (*got[W], error) {
	object, err := from.one(ctx, s.cluster, in.ID)
	if err != nil {
		return nil, err
	}
	return answer(in, "", show(object))
}

// answer sends no body to a caller who has the tag. An empty tag stands for one that is made from the
// representation.
func answer[W any](in *ByID, tag string, body W) (*got[W], error) {
	if tag == "" {
		var err error
		if tag, err = tagOf(body); err != nil {
			return nil, err
		}
	}
	if matches(in.IfNoneMatch, tag) {
		return nil, notModified(tag)
	}
	return &got[W]{ETag: tag, Body: body}, nil
}

// PolicyTag returns the ETag of a policy: the version of the spec, which writes of the status leave alone: If-Match names it.
func PolicyTag(p *v1alpha1.RemediationPolicy) string {
	return strconv.Quote(fmt.Sprintf("%s.%d", p.UID, p.Generation))
}

// notModified is the answer 304, which huma takes for an error.
func notModified(tag string) error {
	return huma.ErrorWithHeaders(&notModifiedError{}, http.Header{"ETag": {tag}})
}

// notModifiedError is the answer to a caller who has the representation.
type notModifiedError struct{}

func (*notModifiedError) Error() string  { return "the caller has the representation" }
func (*notModifiedError) GetStatus() int { return http.StatusNotModified }
