// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/http"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Attributes say who wants to do what.
type Attributes struct {
	User, Verb             string
	Group, Resource        string
	Subresource            string
	Namespace, Name        string
	RequestedBy, ViaClient string
}

// Authorize sets who may do what; everybody may everything until then.
func (s *Server) Authorize(may func(Attributes) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.authorize = may
}

// Review sets what a SubjectAccessReview answers; yes until then. RequestedBy is
// who asks.
func (s *Server) Review(may func(Attributes) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.review = may
}

// Admit sets what a validating admission policy says about an object that is to be made,
// with all that the server itself gives it; an error refuses the object. Nothing is
// refused until then.
func (s *Server) Admit(admit func(Attributes, Object) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admit = admit
}

// mayBeMade says why a new object is not stored: it is not valid, or a policy refuses it.
func (s *Server) mayBeMade(c *call, made Object) error {
	if err := c.invalid(nil, made); err != nil {
		return err
	}
	a := c.attributes()
	a.Verb = "create" // also when an update makes the object
	if err := s.admit(a, made); err != nil {
		return apierrors.NewForbidden(c.resource.groupResource(), c.name, err)
	}
	return nil
}

var verbs = map[string]string{
	http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update",
	http.MethodPatch: "patch", http.MethodDelete: "delete",
}

func (c *call) attributes() Attributes {
	verb := verbs[c.Method]
	if verb == "get" && c.name == "" {
		verb = "list"
	}
	return Attributes{
		User: c.User, Verb: verb, Group: c.resource.Group, Resource: c.resource.Resource, Subresource: c.subresource,
		Namespace: c.namespace, Name: c.name, RequestedBy: c.User, ViaClient: c.Client,
	}
}

// forbidden is worded as the API server words it without a reason of the authorizer.
func (c *call) forbidden() error {
	a := c.attributes()
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	where := "at the cluster scope"
	if a.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	err := apierrors.NewForbidden(c.resource.groupResource(), c.name,
		fmt.Errorf("User %q cannot %s resource %q in API group %q %s", a.User, a.Verb, resource, a.Group, where)) //nolint:staticcheck // the API server's words
	return err
}

const reviewPath = "/apis/authorization.k8s.io/v1/"

func isReview(r Request) bool {
	return strings.HasPrefix(r.Path, reviewPath) && r.Method == http.MethodPost
}

// reviewed answers a SubjectAccessReview, or one about who asks.
func (s *Server) reviewed(r Request) Response {
	switch strings.TrimPrefix(r.Path, reviewPath) {
	case "subjectaccessreviews":
		var review authorizationv1.SubjectAccessReview
		if err := utiljson.Unmarshal(r.Body, &review); err != nil {
			return s.refusal(apierrors.NewBadRequest(err.Error()))
		}
		if review.Spec.ResourceAttributes == nil || review.Spec.User == "" && len(review.Spec.Groups) == 0 {
			return s.refusal(apierrors.NewInvalid(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview").GroupKind(), "", nil))
		}
		review.TypeMeta = metav1.TypeMeta{Kind: "SubjectAccessReview", APIVersion: authorizationv1.SchemeGroupVersion.String()}
		review.Status.Allowed = s.review(asked(review.Spec.User, r, review.Spec.ResourceAttributes))
		return s.answer(http.StatusCreated, review)
	case "selfsubjectaccessreviews":
		var review authorizationv1.SelfSubjectAccessReview
		if err := utiljson.Unmarshal(r.Body, &review); err != nil {
			return s.refusal(apierrors.NewBadRequest(err.Error()))
		}
		if review.Spec.ResourceAttributes == nil {
			return s.refusal(apierrors.NewInvalid(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview").GroupKind(), "", nil))
		}
		review.TypeMeta = metav1.TypeMeta{Kind: "SelfSubjectAccessReview", APIVersion: authorizationv1.SchemeGroupVersion.String()}
		review.Status.Allowed = s.authorize(asked(r.User, r, review.Spec.ResourceAttributes))
		return s.answer(http.StatusCreated, review)
	}
	return s.refusal(unknownPath())
}

func asked(user string, r Request, a *authorizationv1.ResourceAttributes) Attributes {
	return Attributes{
		User: user, Verb: a.Verb, Group: a.Group, Resource: a.Resource, Subresource: a.Subresource,
		Namespace: a.Namespace, Name: a.Name, RequestedBy: r.User, ViaClient: r.Client,
	}
}
