// SPDX-License-Identifier: Apache-2.0

//go:build integration

package randomwrites

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// scale writes through the subresource, whose author no stamp names.
func (g *game) scale(w *twin, author string) {
	g.t.Helper()
	if !w.scales {
		g.change(w, author)
		return
	}
	g.value(author)
	u := g.read(w)
	// The decoy's number stays nothing, so that no controller makes pods.
	replicas := fmt.Sprint(g.rng.IntN(2))
	g.note("%s scales %s %s to %s", author, w.Kind, w.name, replicas)
	body := &unstructured.Unstructured{}
	body.SetGroupVersionKind(gvk("autoscaling/v1", "Scale"))
	g.Must(g.As(author).SubResource("scale").Patch(g.Ctx(), u, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":`+replicas+`}}`)), client.WithSubResourceBody(body)))
	w.observeWrite(valuesOf(w.kind, g.read(w).Object), "")
}

// metadata writes fields that are never compared, to pass for CI or for a product.
func (g *game) metadata(w *twin, author string) {
	g.t.Helper()
	g.value(author)
	patch := map[string]any{"annotations": map[string]any{"looked-at": fmt.Sprint(g.writes), v1alpha1.AnnotationWriter: guarded.CI}}
	switch g.rng.IntN(3) {
	case 0:
		patch["labels"] = map[string]any{"team": fmt.Sprint(g.writes)}
	case 1:
		patch["ownerReferences"] = []any{g.decoy}
		if w.Kind == "Job" {
			patch["ownerReferences"] = []any{g.cronDecoy}
		}
	case 2:
		patch["ownerReferences"] = nil
	}
	raw, err := json.Marshal(map[string]any{"metadata": patch})
	g.Must(err)
	g.note("%s writes metadata of %s %s: %s", author, w.Kind, w.name, raw)
	g.Must(g.As(author).Patch(g.Ctx(), g.read(w), client.RawPatch(types.MergePatchType, raw)))
}

// status writes content and a stamp through /status, which changes neither.
func (g *game) status(w *twin, author string) {
	g.t.Helper()
	if !w.status {
		g.metadata(w, author)
		return
	}
	value := g.value(author)
	u := g.read(w)
	stamp := u.GetAnnotations()[v1alpha1.AnnotationWriter]
	for _, field := range w.fields {
		put(u, field, fieldValue(field, value))
	}
	patch := contentOf(u)
	patch["metadata"] = map[string]any{"labels": map[string]any{"team": fmt.Sprint(g.writes)}}
	forged := g.rng.IntN(2) == 0
	if forged {
		patch["metadata"] = map[string]any{"annotations": map[string]any{v1alpha1.AnnotationWriter: guarded.CI}}
	}
	raw, err := json.Marshal(patch)
	g.Must(err)
	g.note("%s writes %s %s through /status, a forged stamp: %t", author, w.Kind, w.name, forged)
	err = g.As(author).SubResource("status").Patch(g.Ctx(), u, client.RawPatch(types.MergePatchType, raw))
	// The API server drops the metadata of such a write to a custom kind, before policies look at it.
	if refused := forged && stamp != guarded.CI && w.Group != customGroup; refused != apierrors.IsForbidden(err) || !refused && err != nil {
		g.t.Fatalf("%s %s through /status: %v, want a refusal: %t", w.Kind, w.name, err, refused)
	}
	now := g.read(w)
	if after := valuesOf(w.kind, now.Object); !maps.Equal(after, w.live) {
		g.t.Fatalf("%s %s through /status: got %v of %v", w.Kind, w.name, after, w.live)
	}
	if is := now.GetAnnotations()[v1alpha1.AnnotationWriter]; is != stamp {
		g.t.Fatalf("%s %s through /status: the stamp is %q, and was %q", w.Kind, w.name, is, stamp)
	}
}

// The verbs of a change.
const (
	verbPut = iota
	verbMergePatch
	verbApply // the object as it was read, with the changes of the author
	verbDryRunAndPut
	verbJSONPatch
	verbStrategicMergePatch // all of the content; for a custom kind a merge patch
	verbs
)

// change writes one field, or several, by a random verb.
func (g *game) change(w *twin, author string) {
	g.t.Helper()
	value := g.value(author)
	fields := w.fields
	if g.rng.IntN(3) > 0 {
		fields = []string{w.fields[g.rng.IntN(len(w.fields))]}
	}
	if author != guarded.CI && g.rng.IntN(4) == 0 { // a replay of what CI once wrote
		if old := w.trusted[fields[0]]; len(old) > 0 {
			value, fields = old[g.rng.IntN(len(old))], fields[:1]
		}
	}
	verb := g.rng.IntN(verbs)
	forged := author != guarded.CI && g.rng.IntN(2) == 0
	g.note("%s changes %v of %s %s to %q by verb %d", author, fields, w.Kind, w.name, value, verb)
	// A controller may write between the read and the request.
	g.Must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		u := g.read(w)
		if u == nil {
			return fmt.Errorf("%s %s is gone", w.Kind, w.name)
		}
		before := u.DeepCopy()
		for _, field := range fields {
			put(u, field, fieldValue(field, value))
		}
		if forged {
			forge(u)
		}
		return g.request(w, author, verb, fields, before, u)
	}))
	after := valuesOf(w.kind, g.read(w).Object)
	w.observeWrite(after, author)
	if verb == verbApply && author == guarded.CI {
		w.observeApply(after)
	}
}

// fieldValue is a value in the form that a field has.
func fieldValue(field, value string) string {
	if strings.HasSuffix(field, "/image") && !strings.Contains(value, "/") {
		return "registry.example/" + value + ":1"
	}
	return value
}

// request writes an object by one of the verbs.
func (g *game) request(w *twin, author string, verb int, fields []string, before, u *unstructured.Unstructured) error {
	c := g.As(author)
	switch verb {
	case verbPut:
		return c.Update(g.Ctx(), u)
	case verbMergePatch:
		return c.Patch(g.Ctx(), u, client.MergeFrom(before))
	case verbApply:
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		return g.patch(c, u, types.ApplyPatchType, u.Object, client.FieldOwner(short(author)), client.ForceOwnership)
	case verbJSONPatch:
		return g.patch(c, u, types.JSONPatchType, operations(fields, u))
	case verbStrategicMergePatch:
		kind := types.StrategicMergePatchType
		if w.Group == customGroup {
			kind = types.MergePatchType
		}
		body := contentOf(u)
		body["metadata"] = map[string]any{"resourceVersion": u.GetResourceVersion(), "annotations": u.GetAnnotations()}
		return g.patch(c, u, kind, body)
	default:
		if err := c.Update(g.Ctx(), u.DeepCopy(), client.DryRunAll); err != nil {
			return err
		}
		return c.Update(g.Ctx(), u)
	}
}

func (g *game) patch(c client.Client, u *unstructured.Unstructured, kind types.PatchType, body any, options ...client.PatchOption) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	return c.Patch(g.Ctx(), u, client.RawPatch(kind, raw), options...)
}

// operations is a JSON Patch of fields and of the stamp.
func operations(fields []string, u *unstructured.Unstructured) []map[string]any {
	var steps []map[string]any
	for _, field := range fields {
		steps = append(steps, map[string]any{"op": "replace", "path": field, "value": follow(u.Object, field)})
	}
	if stamp, ok := u.GetAnnotations()[v1alpha1.AnnotationWriter]; ok {
		path := "/metadata/annotations/" + strings.ReplaceAll(v1alpha1.AnnotationWriter, "/", "~1")
		steps = append(steps, map[string]any{"op": "add", "path": path, "value": stamp})
	}
	return steps
}

// contentOf is what an object holds besides its type, its metadata and its status.
func contentOf(u *unstructured.Unstructured) map[string]any {
	content := maps.Clone(u.Object)
	for _, key := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(content, key)
	}
	return content
}
