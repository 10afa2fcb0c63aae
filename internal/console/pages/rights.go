// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"errors"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// bar bars each form for which the caller lacks a right. Each right of a page is asked for once. A right that
// cannot be asked for is none.
func (r *reader) bar(p *view.Page) {
	missing := map[view.Want]string{}
	for i := range p.Sections {
		for n := range p.Sections[i].Forms {
			f := &p.Sections[i].Forms[n]
			for _, want := range f.Wants {
				if f.Barred != "" {
					break
				}
				why, asked := missing[want]
				if !asked {
					why = r.missing(&want)
					missing[want] = why
				}
				f.Barred = why
			}
		}
	}
}

// missing says why the caller lacks a right; empty if the caller has it.
func (r *reader) missing(want *view.Want) string {
	allowed, err := r.Allows(r, &authorizationv1.ResourceAttributes{
		Group: v1alpha1.GroupVersion.Group, Resource: want.Resource, Verb: want.Verb, Namespace: want.Namespace, Name: want.Name,
	})
	barred, isProblem := errors.AsType[*wire.Problem](err)
	switch {
	case isProblem && barred.Status == http.StatusForbidden: // whatever the rights of the user are
		return "You may not do this: " + barred.Detail + "."
	case err != nil:
		return "Whether you may do this is not known: " + r.sentenceOf(err)
	case !allowed:
		return want.Missing()
	}
	return ""
}
