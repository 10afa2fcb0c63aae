// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func (s *Server) patch(c *call) (any, error) {
	if c.resource.Dropped {
		return Object{}, nil
	}
	found := s.current(c.key())
	if found.object == nil {
		return nil, c.notFound()
	}
	raw := found.raw
	if c.subresource == "scale" {
		raw = encode(scaleOf(found.object))
	}
	patched, err := c.applied(raw)
	if err != nil {
		return nil, err
	}
	var sent Object
	if err := utiljson.Unmarshal(patched, &sent); err != nil || metaOf(sent) == nil {
		return nil, rejected(fmt.Sprintf("the patch leaves no object: %v", err))
	}
	if name := metaString(sent, "name"); name != c.name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, c.name))
	}
	if c.subresource == "scale" {
		return s.putScale(c, found.object, sent)
	}
	return s.update(c, found.object, sent)
}

// applied carries a patch out.
func (c *call) applied(raw []byte) ([]byte, error) {
	switch types.PatchType(c.ContentType) {
	case types.JSONPatchType:
		patch, err := jsonpatch.DecodePatch(c.Body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		patched, err := patch.Apply(raw)
		if err != nil {
			return nil, rejected(err.Error())
		}
		return patched, nil
	case types.MergePatchType:
		patched, err := jsonpatch.MergePatch(raw, c.Body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return patched, nil
	case types.StrategicMergePatchType, types.ApplyYAMLPatchType, types.ApplyCBORPatchType:
	}
	err := apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, c.Method, c.resource.groupResource(), c.name,
		"patches of this type are not supported here: "+c.ContentType, 0, false)
	return nil, err
}

// rejected is how a patch is refused that cannot be applied; which of its
// operations it was, the API server does not say.
func rejected(why string) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", why, 0, false)
}
