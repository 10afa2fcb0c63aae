// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
)

// decoded reads the object of a request's body.
func (c *call) decoded() (Object, error) {
	var o Object
	if err := utiljson.Unmarshal(c.Body, &o); err != nil || o == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v", c.resource.Kind, err))
	}
	kind, _ := o["kind"].(string)
	version, _ := o["apiVersion"].(string)
	if kind != c.wantedKind() || c.subresource != "scale" && version != c.resource.groupVersion().String() {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s", kind, version, c.resource.Kind))
	}
	if metaOf(o) == nil {
		o["metadata"] = map[string]any{}
	}
	if namespace := metaString(o, "namespace"); namespace != "" && namespace != c.namespace {
		return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return o, nil
}

func (c *call) wantedKind() string {
	if c.subresource == "scale" {
		return "Scale"
	}
	return c.resource.Kind
}

func (s *Server) create(c *call) (any, error) {
	o, err := c.decoded()
	if err != nil {
		return nil, err
	}
	if c.resource.Dropped {
		return o, nil
	}
	if c.name, err = s.nameFor(c, o); err != nil {
		return nil, err
	}
	if err := s.maybeMade(c); err != nil {
		return nil, err
	}
	o = s.born(c, o)
	if c.resource.Mutate != nil {
		c.resource.Mutate(c.User, nil, o)
	}
	if err := s.mayBeMade(c, o); err != nil {
		return nil, err
	}
	switch {
	case metaString(o, "resourceVersion") != "":
		// It is answered without a reason.
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: errors.New("resourceVersion should not be set on objects to be created").Error(),
		}}
	case s.current(c.key()).object != nil:
		return nil, apierrors.NewAlreadyExists(c.resource.groupResource(), c.name)
	case c.DryRun():
		return o, nil
	}
	return s.commit(c, nil, o).answer(), nil
}

// nameFor is the name of an object to be made.
func (s *Server) nameFor(c *call, o Object) (string, error) {
	name := metaString(o, "name")
	if prefix := metaString(o, "generateName"); name == "" && prefix != "" {
		name = fmt.Sprintf("%s%05x", prefix, s.uids+1)
	}
	if name == "" {
		return "", apierrors.NewInvalid(c.resource.groupKind(), "", requiredName())
	}
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return "", apierrors.NewInvalid(c.resource.groupKind(), name, wrongName(name, wrong[0]))
	}
	return name, nil
}

// maybeMade says why nothing can be made in a namespace that is not there, or is
// being deleted.
func (s *Server) maybeMade(c *call) error {
	if !c.resource.Namespaced {
		return nil
	}
	namespaces := s.resources[resourceKey{"", "v1", "namespaces"}]
	namespace := s.current(objectKey{namespaces, "", c.namespace}).object
	switch {
	case namespace == nil:
		return apierrors.NewNotFound(namespaces.groupResource(), c.namespace)
	case metaString(namespace, "deletionTimestamp") != "":
		err := apierrors.NewForbidden(c.resource.groupResource(), c.name,
			fmt.Errorf("unable to create new content in namespace %s because it is being terminated", c.namespace))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: "NamespaceTerminating", Message: fmt.Sprintf("namespace %s is being terminated", c.namespace), Field: "metadata.namespace",
		})
		return err
	}
	return nil
}

// born gives an object what only the server gives.
func (s *Server) born(c *call, o Object) Object {
	o = withMeta(o, "name", c.name)
	if c.resource.Namespaced {
		o = withMeta(o, "namespace", c.namespace)
	}
	o = withMeta(o, "uid", s.newUID())
	o = withMeta(o, "creationTimestamp", s.stamp())
	if c.resource.Generation != NotCounted {
		o = withMeta(o, "generation", int64(1))
	}
	if c.resource.Status {
		o = keep(o, Object{}, "status")
	}
	return o
}
