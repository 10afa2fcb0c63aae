// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// locked is what the API server says of a resourceVersion that is not the present one.
const locked = "the object has been modified; please apply your changes to the latest version and try again"

func (s *Server) put(c *call) (int, any, error) {
	sent, err := c.decoded()
	if err != nil {
		return 0, nil, err
	}
	if name := metaString(sent, "name"); name != c.name {
		return 0, nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, c.name))
	}
	if s.current(c.key()).object == nil && c.resource.CreateOnUpdate && c.subresource == "" {
		body, err := s.putNew(c, sent)
		return http.StatusCreated, body, err
	}
	body, err := s.putOver(c, sent)
	return http.StatusOK, body, err
}

// putNew makes what is not there. A uid that was sent is a precondition that
// nothing meets; a resourceVersion is none at all.
func (s *Server) putNew(c *call, sent Object) (any, error) {
	if uid := metaString(sent, "uid"); uid != "" {
		return nil, c.wrongUID(uid, Object{})
	}
	if err := s.maybeMade(c); err != nil {
		return nil, err
	}
	o := s.born(c, keepMeta(sent, Object{}, "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"))
	if c.resource.Mutate != nil {
		c.resource.Mutate(c.User, nil, o)
	}
	if err := s.mayBeMade(c, o); err != nil || c.DryRun() {
		return o, err
	}
	return s.commit(c, nil, o).answer(), nil
}

func (s *Server) putOver(c *call, sent Object) (any, error) {
	before := s.current(c.key()).object
	if before == nil {
		return nil, c.notFound()
	}
	if uid := metaString(sent, "uid"); uid != "" && uid != metaString(before, "uid") {
		return nil, c.wrongUID(uid, before)
	}
	if c.subresource == "scale" {
		return s.putScale(c, before, sent)
	}
	return s.update(c, before, sent)
}

// wrongUID is a precondition of storage: it is looked at before anything else of
// an object that is there.
func (c *call) wrongUID(uid string, before Object) error {
	key := "/registry/" + c.storagePrefix() + "/" + c.namespace + "/" + c.name
	return apierrors.NewConflict(c.resource.groupResource(), c.name, fmt.Errorf(
		"StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s",
		key, uid, metaString(before, "uid")))
}

func (c *call) storagePrefix() string {
	if c.resource.Custom {
		return c.resource.Group + "/" + c.resource.Resource
	}
	return c.resource.Resource
}

// update stores a new state over one that is there.
func (s *Server) update(c *call, before, sent Object) (any, error) {
	if err := c.bound(before, sent); err != nil {
		return nil, err
	}
	after := c.prepared(before, sent)
	if c.resource.Mutate != nil && c.subresource == "" {
		after = cloned(after)
		c.resource.Mutate(c.User, before, after)
	}
	if c.subresource == "" && c.resource.moved(before, after) {
		after = withMeta(after, "generation", generationOf(before)+1)
	}
	if err := c.invalid(before, after); err != nil {
		return nil, err
	}
	if same(before, after) || c.DryRun() {
		return after, nil
	}
	if metaString(after, "deletionTimestamp") != "" && !hasFinalizers(after) {
		s.commit(c, before, nil)
		return after, nil
	}
	return s.commit(c, before, after).answer(), nil
}

// bound says why a request's resourceVersion keeps it from being stored. A built-in
// kind can be written without one.
func (c *call) bound(before, sent Object) error {
	version := metaString(sent, "resourceVersion")
	none := version == "" || version == "0"
	switch {
	case none && c.resource.Custom:
		return apierrors.NewInvalid(c.resource.groupKind(), c.name, versionRequired())
	case !none && version != metaString(before, "resourceVersion"):
		return apierrors.NewConflict(c.resource.groupResource(), c.name, errors.New(locked))
	}
	return nil
}

// prepared is what of a request counts: each endpoint lets through its part.
func (c *call) prepared(before, sent Object) Object {
	system := []string{"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion", "namespace"}
	switch {
	case c.subresource == "status" && c.resource.Custom:
		return keep(before, sent, "status")
	case c.subresource == "status":
		// Annotations, finalizers and owners can be changed here; only this is kept.
		after := keepMeta(sent, before, append(system, "labels")...)
		return keepUID(keep(after, before, "spec"), before)
	}
	after := keepUID(keepMeta(sent, before, system...), before)
	if c.resource.Status {
		after = keep(after, before, "status")
	}
	return after
}

// keepUID fills in a uid that was not sent; one that was is validated.
func keepUID(after, before Object) Object {
	if metaString(after, "uid") != "" {
		return after
	}
	return keepMeta(after, before, "uid")
}

func hasFinalizers(o Object) bool {
	all, _ := metaOf(o)["finalizers"].([]any)
	return len(all) > 0
}

// cloned is a copy that may be changed.
func cloned(o Object) Object {
	var c Object
	if err := utiljson.Unmarshal(encode(o), &c); err != nil {
		panic(fmt.Sprintf("decoding what was just encoded: %v", err))
	}
	return c
}
