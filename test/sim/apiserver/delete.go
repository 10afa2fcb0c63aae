// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func (s *Server) remove(c *call) (any, error) {
	var options metav1.DeleteOptions
	if len(c.Body) > 0 {
		if err := utiljson.Unmarshal(c.Body, &options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	before := s.current(c.key()).object
	if before == nil {
		return nil, c.notFound()
	}
	if err := c.preconditions(options.Preconditions, before); err != nil {
		return nil, err
	}
	dry := c.DryRun()
	if len(c.Body) > 0 {
		// With a body nobody looks at the query.
		dry = slices.Contains(options.DryRun, metav1.DryRunAll)
	}
	if hasFinalizers(before) || c.resource.Kind == "Namespace" {
		return s.condemned(c, before, dry), nil
	}
	if !dry {
		s.commit(c, before, nil)
	}
	return c.removed(before), nil
}

// preconditions of a removal are worded unlike those of a write.
func (c *call) preconditions(wanted *metav1.Preconditions, before Object) error {
	if wanted == nil {
		return nil
	}
	uid, version := metaString(before, "uid"), metaString(before, "resourceVersion")
	switch {
	case wanted.UID != nil && string(*wanted.UID) != uid:
		return apierrors.NewConflict(c.resource.groupResource(), c.name,
			fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *wanted.UID, uid))
	case wanted.ResourceVersion != nil && *wanted.ResourceVersion != version:
		return apierrors.NewConflict(c.resource.groupResource(), c.name,
			fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *wanted.ResourceVersion, version))
	}
	return nil
}

// condemned marks an object as being deleted; it stays until nobody holds it. A
// namespace stays for good: nobody empties it here.
func (s *Server) condemned(c *call, before Object, dry bool) any {
	if metaString(before, "deletionTimestamp") != "" {
		return before
	}
	after := withMeta(before, "deletionTimestamp", s.stamp())
	after = withMeta(after, "deletionGracePeriodSeconds", int64(0))
	if generation := generationOf(before); generation > 0 {
		after = withMeta(after, "generation", generation+1)
	}
	if dry {
		return after
	}
	return s.commit(c, before, after).answer()
}

// removed is the answer to a removal.
func (c *call) removed(before Object) any {
	status := metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{
		Name: c.name, Group: c.resource.Group, Kind: c.resource.Resource, UID: uidOf(before),
	}}
	status.Code = 0 // a success has none
	return statusObject(status)
}

// Apply stores an object as it is given, whatever was there, and by nobody: the
// way a world begins. It returns what is stored.
func (s *Server) Apply(group, version, resource, namespace string, o Object) (Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.resources[resourceKey{group, version, resource}]
	if r == nil {
		return nil, unknownPath()
	}
	c := &call{Request: Request{Method: http.MethodPost}, resource: r, namespace: namespace, name: metaString(o, "name")}
	status := o["status"]
	o = s.born(c, cloned(o))
	if status != nil {
		o["status"] = status
	}
	return s.commit(c, s.current(c.key()).object, cloned(o)).object, nil
}
