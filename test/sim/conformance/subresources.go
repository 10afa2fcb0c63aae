// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"net/http"
)

func statuses() map[string]Row {
	row := func(want Answer, edits ...edit) Row {
		return Row{Kind: Deployment, Method: http.MethodPut, Subresource: "status", Body: object(edits...), Want: want}
	}
	merging := func(want Answer, metadata map[string]any) Row {
		change := map[string]any{"metadata": metadata, "status": map[string]any{"replicas": int64(7)}}
		return Row{Kind: Deployment, Method: http.MethodPatch, Subresource: "status", ContentType: mergePatch, Body: merge(change), Want: want}
	}
	absent := func(r Row) Row { r.Setup = Absent; return r }
	seven := status("replicas", int64(7))
	return named("the status of a Deployment", map[string]Row{
		"put with uid and resourceVersion is stored":          row(written, seven),
		"put of a spec or a label is not stored":              row(ok, replicas(3), label),
		"put of an annotation is stored, and moves no number": row(written, annotation),
		"put with a wrong uid conflicts":                      row(conflict, seven, foreign),
		"put with a stale resourceVersion conflicts":          row(conflict, seven, stale),
		"put without uid and resourceVersion is stored":       row(written, seven, without("uid"), without("resourceVersion")),
		"a merge patch is stored":                             merging(written, map[string]any{"uid": "$UID", "resourceVersion": "$VERSION"}),
		"a merge patch with a wrong uid is invalid":           merging(invalid(Unchanged, immutableUID(Deployment)...), map[string]any{"uid": otherUID}),
		"a merge patch with a stale resourceVersion":          merging(conflict, map[string]any{"resourceVersion": "$OLD"}),
		"a merge patch of what is not there":                  absent(merging(missing, map[string]any{})),
	})
}

func customStatuses() map[string]Row {
	row := func(want Answer, edits ...edit) Row {
		return Row{Kind: Widget, Method: http.MethodPut, Subresource: "status", Body: object(edits...), Want: want}
	}
	merging := func(want Answer, metadata map[string]any) Row {
		change := map[string]any{"metadata": metadata, "status": map[string]any{"replicas": int64(7)}}
		return Row{Kind: Widget, Method: http.MethodPatch, Subresource: "status", ContentType: mergePatch, Body: merge(change), Want: want}
	}
	absent := func(r Row) Row { r.Setup = Absent; return r }
	dry := func(r Row) Row { r.DryRun = true; return r }
	seven := status("replicas", int64(7))
	tested := op("add", "/status", map[string]any{"replicas": int64(7)})
	json := func(want Answer, ops ...map[string]any) Row {
		return Row{Kind: Widget, Method: http.MethodPatch, Subresource: "status", ContentType: jsonPatch, Body: patch(ops...), Want: want}
	}
	return named("the status of a custom resource", map[string]Row{
		"put with uid and resourceVersion is stored":             row(written, seven),
		"put as a dry run is not stored":                         dry(row(ok, seven)),
		"put of a spec, label or annotation is not stored":       row(ok, replicas(3), label, annotation),
		"put with a wrong uid conflicts":                         row(conflict, seven, foreign),
		"put with a stale resourceVersion conflicts":             row(conflict, seven, stale),
		"put without a resourceVersion is invalid":               row(invalid(Unchanged, noVersion), seven, without("resourceVersion")),
		"put on what is not there, without uid":                  absent(row(missing, seven, without("uid"))),
		"a merge patch is stored":                                merging(written, map[string]any{"uid": "$UID", "resourceVersion": "$VERSION"}),
		"a merge patch with a wrong uid is stored all the same":  merging(written, map[string]any{"uid": otherUID}),
		"a merge patch with a stale resourceVersion conflicts":   merging(conflict, map[string]any{"resourceVersion": "$OLD"}),
		"a merge patch of what is not there":                     absent(merging(missing, map[string]any{})),
		"a JSON patch that tests the uid is stored":              json(written, op("test", "/metadata/uid", "$UID"), tested),
		"a JSON patch that tests a wrong uid is rejected":        json(rejected, op("test", "/metadata/uid", otherUID), tested),
		"a JSON patch that tests an old resourceVersion is also": json(rejected, op("test", "/metadata/resourceVersion", "$OLD"), tested),
	})
}

func scales() map[string]Row {
	row := func(want Answer, edits ...edit) Row {
		edits = append([]edit{scale}, edits...)
		return Row{Kind: Deployment, Method: http.MethodPut, Subresource: "scale", Body: object(edits...), Want: want}
	}
	merging := func(want Answer, metadata map[string]any) Row {
		change := map[string]any{"metadata": metadata, "spec": map[string]any{"replicas": int64(3)}}
		return Row{Kind: Deployment, Method: http.MethodPatch, Subresource: "scale", ContentType: mergePatch, Body: merge(change), Want: want}
	}
	dry := func(r Row) Row { r.DryRun = true; return r }
	absent := func(r Row) Row { r.Setup = Absent; return r }
	return named("the scale of a Deployment", map[string]Row{
		"put with uid and resourceVersion is stored": row(moved),
		"put without uid and resourceVersion":        row(moved, without("uid"), without("resourceVersion")),
		"put as a dry run is not stored":             dry(row(ok)),
		"put with a wrong uid conflicts":             row(conflict, foreign),
		"put with a stale resourceVersion conflicts": row(conflict, stale),
		"put of negative replicas is invalid":        row(invalid(Unchanged, "FieldValueInvalid spec.replicas"), replicas(-1)),
		"a merge patch is stored":                    merging(moved, map[string]any{}),
		"a merge patch with a wrong uid conflicts":   merging(conflict, map[string]any{"uid": otherUID}),
		"a merge patch with a stale resourceVersion": merging(conflict, map[string]any{"resourceVersion": "$OLD"}),
		"a merge patch of what is not there":         absent(merging(missing, map[string]any{})),
	})
}
