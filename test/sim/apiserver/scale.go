// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// scaleOf is an object as its /scale shows it.
func scaleOf(o Object) Object {
	spec, _ := o["spec"].(map[string]any)
	status, _ := o["status"].(map[string]any)
	meta := map[string]any{}
	for _, f := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} {
		if v, ok := metaOf(o)[f]; ok {
			meta[f] = v
		}
	}
	return Object{
		"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta,
		"spec":   map[string]any{"replicas": number(spec["replicas"], 1)},
		"status": map[string]any{"replicas": number(status["replicas"], 0)},
	}
}

func number(v any, otherwise int64) int64 {
	if n, ok := v.(int64); ok {
		return n
	}
	return otherwise
}

// putScale writes the replicas of an object through its Scale.
func (s *Server) putScale(c *call, before, scale Object) (any, error) {
	if uid := metaString(scale, "uid"); uid != "" && uid != metaString(before, "uid") {
		return nil, c.wrongUID(uid, before)
	}
	if version := metaString(scale, "resourceVersion"); version != "" && version != metaString(before, "resourceVersion") {
		return nil, apierrors.NewConflict(c.resource.groupResource(), c.name, errors.New(locked))
	}
	wanted, _ := scale["spec"].(map[string]any)
	replicas := number(wanted["replicas"], 0)
	if replicas < 0 {
		wrong := field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), replicas, "must be greater than or equal to 0")}
		return nil, apierrors.NewInvalid(c.resource.groupKind(), c.name, wrong)
	}
	spec, _ := before["spec"].(map[string]any)
	spec = maps.Clone(spec)
	spec["replicas"] = replicas
	after := maps.Clone(before)
	after["spec"] = spec
	if same(before, after) {
		return scaleOf(before), nil
	}
	after = withMeta(after, "generation", generationOf(before)+1)
	if c.DryRun() {
		return scaleOf(after), nil
	}
	return scaleOf(s.commit(c, before, after).object), nil
}
