// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// revisionOf is up to which revision a read sees; zero is everything.
func (s *Server) revisionOf(c *call) int64 {
	if c.Query.Get("resourceVersion") == "0" {
		return s.replica(c.Client, s.revision)
	}
	return 0
}

func (s *Server) get(c *call) (any, error) {
	found := s.asOf(c.key(), s.revisionOf(c))
	if found.object == nil {
		return nil, c.notFound()
	}
	if c.subresource == "scale" {
		return scaleOf(found.object), nil
	}
	return found.answer(), nil
}

func (c *call) notFound() error { return apierrors.NewNotFound(c.resource.groupResource(), c.name) }

// list answers with the objects in the order of their names.
func (s *Server) list(c *call) (any, error) {
	matches, err := matcher(c)
	if err != nil {
		return nil, err
	}
	revision := s.revisionOf(c)
	var keys []objectKey
	for k := range s.objects {
		if k.resource == c.resource && (c.namespace == "" || k.namespace == c.namespace) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b objectKey) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	var items [][]byte
	for _, k := range keys {
		if found := s.asOf(k, revision); found.object != nil && matches(found.object) {
			items = append(items, found.raw)
		}
	}
	if revision == 0 {
		revision = s.revision
	}
	// What is stored is encoded already: to encode it once more would take most of the time of a list.
	head := encode(Object{
		"kind": c.resource.Kind + "List", "apiVersion": c.resource.groupVersion().String(),
		"metadata": map[string]any{"resourceVersion": strconv.FormatInt(revision, 10)},
	})
	return json.RawMessage(slices.Concat(head[:len(head)-1], []byte(`,"items":[`), bytes.Join(items, []byte(",")), []byte("]}"))), nil
}

// matcher is what a list's selectors pick.
func matcher(c *call) (func(Object) bool, error) {
	if c.Query.Get("resourceVersionMatch") != "" || c.Query.Get("continue") != "" {
		return nil, apierrors.NewBadRequest("lists of one exact version, and in parts, are not supported here")
	}
	byLabel, err := labels.Parse(c.Query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(c.Query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for _, requirement := range byField.Requirements() {
		if requirement.Field != "metadata.name" && requirement.Field != "metadata.namespace" {
			return nil, apierrors.NewBadRequest("field label not supported: " + requirement.Field)
		}
	}
	return func(o Object) bool {
		return byLabel.Matches(labelsOf(o)) &&
			byField.Matches(fields.Set{"metadata.name": metaString(o, "name"), "metadata.namespace": metaString(o, "namespace")})
	}, nil
}

func labelsOf(o Object) labels.Set {
	set := labels.Set{}
	all, _ := metaOf(o)["labels"].(map[string]any)
	for k, v := range all {
		set[k], _ = v.(string)
	}
	return set
}
