// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"net/http"
)

// Kind of the object that a row is about.
type Kind struct {
	Path, APIVersion, Kind string
	// Spec is how objects of the kind begin.
	Spec map[string]any
}

// The kinds of the table: a built-in one, one that a PUT makes, and a custom one.
var (
	Deployment = Kind{"/apis/apps/v1/namespaces/%s/deployments", "apps/v1", "Deployment", map[string]any{
		"replicas": int64(1),
		"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": "shop:1"}}},
		},
	}}
	Service = Kind{"/api/v1/namespaces/%s/services", "v1", "Service", map[string]any{
		"selector": map[string]any{"app": "web"},
		"ports":    []any{map[string]any{"name": "http", "port": int64(80), "protocol": "TCP"}},
	}}
	Widget = Kind{"/apis/sim.plumbline.dev/v1/namespaces/%s/widgets", "sim.plumbline.dev/v1", "Widget", map[string]any{"replicas": int64(1)}}
)

// Setup is what is there before a row's request.
type Setup string

// The setups.
const (
	// Present: an object, which was written once after it was made.
	Present Setup = ""
	// Absent: none.
	Absent Setup = "absent"
	// Held: an object with a finalizer.
	Held Setup = "held"
	// NoNamespace: not even a namespace.
	NoNamespace Setup = "no namespace"
	// EndingNamespace: no object, in a namespace that is being deleted.
	EndingNamespace Setup = "ending namespace"
)

// Existing is what a row's request can name.
type Existing struct {
	Name, Namespace, UID string
	// Version is the present resourceVersion, Old the one before.
	Version, Old string
	// Object as it is; the request may change it.
	Object map[string]any
}

// Effect is what became of the object.
type Effect string

// The effects.
const (
	// Unchanged: it is as before.
	Unchanged Effect = "unchanged"
	// Written: its resourceVersion moved, and its generation did not.
	Written Effect = "written"
	// Moved: its resourceVersion and its generation moved.
	Moved Effect = "moved"
	// Made: it is there.
	Made Effect = "made"
	// Missing: it is not there.
	Missing Effect = "missing"
	// Ending: it is there, and being deleted.
	Ending Effect = "ending"
)

// Answer is what comes of a request.
type Answer struct {
	Code   int
	Reason string
	// Causes as type and field.
	Causes []string
	Effect Effect
}

// Row is one request, and what comes of it.
type Row struct {
	Kind        Kind
	Setup       Setup
	Method      string
	Subresource string
	DryRun      bool
	ContentType string
	// Body of the request; none without it.
	Body func(*Existing) any
	Want Answer
}

const (
	jsonPatch  = "application/json-patch+json"
	mergePatch = "application/merge-patch+json"
	plain      = "application/json"
)

// edit changes the object that a request sends.
type edit func(x *Existing)

func object(edits ...edit) func(*Existing) any {
	return func(x *Existing) any {
		for _, e := range edits {
			e(x)
		}
		return x.Object
	}
}

func (x *Existing) meta() map[string]any { return x.Object["metadata"].(map[string]any) }

func meta(field string, value any) edit { return func(x *Existing) { x.meta()[field] = value } }

func without(field string) edit { return func(x *Existing) { delete(x.meta(), field) } }

func spec(field string, value any) edit {
	return func(x *Existing) { x.Object["spec"].(map[string]any)[field] = value }
}

func status(field string, value any) edit {
	return func(x *Existing) {
		if x.Object["status"] == nil {
			x.Object["status"] = map[string]any{}
		}
		x.Object["status"].(map[string]any)[field] = value
	}
}

func replicas(n int64) edit { return spec("replicas", n) }

func stale(x *Existing) { x.meta()["resourceVersion"] = x.Old }

func label(x *Existing) { x.meta()["labels"] = map[string]any{"changed": "yes"} }

func annotation(x *Existing) { x.meta()["annotations"] = map[string]any{"changed": "yes"} }

const otherUID = "00000000-dead-4000-8000-000000000000"

var foreign = meta("uid", otherUID)

// scale turns the object into its Scale.
func scale(x *Existing) {
	x.Object = map[string]any{
		"kind": "Scale", "apiVersion": "autoscaling/v1",
		"metadata": map[string]any{"name": x.Name, "namespace": x.Namespace, "uid": x.UID, "resourceVersion": x.Version},
		"spec":     map[string]any{"replicas": int64(3)},
	}
}

// merge is a merge patch of metadata, spec and status.
func merge(change map[string]any) func(*Existing) any {
	return func(x *Existing) any { return resolve(change, x) }
}

// op is one operation of a JSON patch; a value of $UID, $VERSION or $OLD is
// replaced by what it names.
func op(kind, path string, value any) map[string]any {
	return map[string]any{"op": kind, "path": path, "value": value}
}

func patch(ops ...map[string]any) func(*Existing) any {
	return func(x *Existing) any {
		var all []any
		for _, o := range ops {
			all = append(all, resolve(o, x))
		}
		return all
	}
}

func resolve(v any, x *Existing) any {
	switch v := v.(type) {
	case string:
		switch v {
		case "$UID":
			return x.UID
		case "$VERSION":
			return x.Version
		case "$OLD":
			return x.Old
		}
	case map[string]any:
		next := map[string]any{}
		for k, inner := range v {
			next[k] = resolve(inner, x)
		}
		return next
	}
	return v
}

func deleting(preconditions map[string]any) func(*Existing) any {
	return func(x *Existing) any {
		return map[string]any{
			"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
			"preconditions": resolve(preconditions, x),
		}
	}
}

// deletingDry says it in the body: with one, the API server ignores a dryRun in the
// query, and deletes.
func deletingDry(preconditions map[string]any) func(*Existing) any {
	return func(x *Existing) any {
		options := deleting(preconditions)(x).(map[string]any)
		options["dryRun"] = []any{"All"}
		return options
	}
}

// The answers that come often.
var (
	ok       = Answer{Code: http.StatusOK, Effect: Unchanged}
	written  = Answer{Code: http.StatusOK, Effect: Written}
	moved    = Answer{Code: http.StatusOK, Effect: Moved}
	conflict = Answer{Code: http.StatusConflict, Reason: "Conflict", Effect: Unchanged}
	// rejected is all that is said of a JSON patch that cannot be applied.
	rejected = Answer{Code: http.StatusUnprocessableEntity, Reason: "Invalid", Effect: Unchanged}
	missing  = Answer{Code: http.StatusNotFound, Reason: "NotFound", Effect: Missing}
	bad      = Answer{Code: http.StatusBadRequest, Reason: "BadRequest", Effect: Unchanged}
)

func invalid(effect Effect, causes ...string) Answer {
	return Answer{Code: http.StatusUnprocessableEntity, Reason: "Invalid", Causes: causes, Effect: effect}
}
