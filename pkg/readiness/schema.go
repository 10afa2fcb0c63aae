// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Status says whether objects of a kind can tell that they are ready.
type Status string

// The answers. The zero Status is that the schema is not known, or leaves open what a
// status holds.
const (
	StatusUnknown Status = ""
	// StatusNone: objects of the kind have neither status.conditions nor
	// status.observedGeneration.
	StatusNone Status = "None"
	// StatusReported: objects of the kind may have one of them.
	StatusReported Status = "Reported"
)

// StatusOf reads from the OpenAPI v3 document of a group and version, as the API server
// serves that document, what objects of a kind can tell. It fails for a document without
// the kind.
func StatusOf(document []byte, gvk canon.GVK) (Status, error) {
	var api openAPI
	if err := json.Unmarshal(document, &api); err != nil {
		return StatusUnknown, fmt.Errorf("decoding the schemas of %s/%s: %w", gvk.Group, gvk.Version, err)
	}
	for _, s := range api.Components.Schemas {
		for _, of := range s.Kinds {
			if of.is(gvk) {
				return api.statusOf(s, gvk), nil
			}
		}
	}
	return StatusUnknown, fmt.Errorf("finding the schema of %s in %s/%s: it does not exist", gvk.Kind, gvk.Group, gvk.Version)
}

func (a *openAPI) statusOf(s *schema, gvk canon.GVK) Status {
	status, named := s.Properties["status"]
	switch {
	case named:
		return a.reports(status, 0)
	case s.open() && a.statusSubresource(gvk):
		return StatusUnknown
	}
	// What no schema names is pruned, or has no controller that writes it.
	return StatusNone
}

// maxReferences bounds how many references lead to a schema.
const maxReferences = 8

func (a *openAPI) reports(s *schema, depth int) Status {
	if s == nil || depth > maxReferences {
		return StatusUnknown
	}
	for _, field := range []string{"conditions", "observedGeneration"} {
		if _, has := s.Properties[field]; has {
			return StatusReported
		}
	}
	if s.open() {
		return StatusUnknown
	}
	parts := s.AllOf
	if name, refers := strings.CutPrefix(s.Reference, "#/components/schemas/"); refers {
		parts = append(parts, a.Components.Schemas[name])
	}
	answer := StatusNone
	for _, part := range parts {
		switch a.reports(part, depth+1) {
		case StatusReported:
			return StatusReported
		case StatusUnknown:
			answer = StatusUnknown
		case StatusNone:
		}
	}
	return answer
}

// statusSubresource says that the API server serves the status of a kind by itself, so
// that a controller of the kind reports there.
func (a *openAPI) statusSubresource(gvk canon.GVK) bool {
	for path, operations := range a.Paths {
		if strings.HasSuffix(path, "/{name}/status") && operations.Get.Kind.is(gvk) {
			return true
		}
	}
	return false
}

// openAPI is as much of an OpenAPI v3 document as decides.
type openAPI struct {
	Paths map[string]struct {
		Get struct {
			Kind groupVersionKind `json:"x-kubernetes-group-version-kind"`
		} `json:"get"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]*schema `json:"schemas"`
	} `json:"components"`
}

type schema struct {
	Properties map[string]*schema `json:"properties"`
	AllOf      []*schema          `json:"allOf"`
	Reference  string             `json:"$ref"`
	Preserves  bool               `json:"x-kubernetes-preserve-unknown-fields"`
	// Additional is a schema, or whether there may be any other fields.
	Additional json.RawMessage    `json:"additionalProperties"`
	Kinds      []groupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// open says that an object may have fields that the schema does not name.
func (s *schema) open() bool {
	return s.Preserves || len(s.Additional) > 0 && string(s.Additional) != "false"
}

type groupVersionKind struct{ Group, Version, Kind string }

func (k groupVersionKind) is(gvk canon.GVK) bool {
	return k.Group == gvk.Group && k.Version == gvk.Version && k.Kind == gvk.Kind
}
