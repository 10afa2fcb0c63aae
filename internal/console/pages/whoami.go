// SPDX-License-Identifier: Apache-2.0

package pages

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func readWhoami(r *reader) (view.Page, error) {
	namespace, err := r.namespace()
	if err != nil {
		return view.Page{}, err
	}
	in := view.Whoami{Namespace: namespace}
	if in.User, err = r.Whoami(r); err != nil {
		return view.Page{}, err
	}
	for _, right := range view.Rights {
		answer := view.Answer{Right: right}
		answer.Allowed, err = r.Allows(r, &authorizationv1.ResourceAttributes{
			Group: v1alpha1.GroupVersion.Group, Resource: right.Resource, Verb: right.Verb, Namespace: namespace,
		})
		if err != nil {
			answer.Unread = r.sentenceOf(err)
		}
		in.Answers = append(in.Answers, answer)
	}
	in.Now = r.Now()
	return view.WhoamiOf(&in), nil
}
