// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"maps"
	"net/http"
)

// immutableUID lists the causes of an answer to a write that sets another uid. The API
// server validates the metadata of a custom resource twice.
func immutableUID(kind Kind) []string {
	const cause = "FieldValueInvalid metadata.uid"
	if kind.Kind == Widget.Kind {
		return []string{cause, cause}
	}
	return []string{cause}
}

const noVersion = "FieldValueInvalid metadata.resourceVersion"

// Table is every row by its name.
func Table() map[string]Row {
	rows := map[string]Row{}
	for _, part := range []map[string]Row{
		put(), putBoth("a Deployment", Deployment), putBoth("a custom resource", Widget),
		patches("a Deployment", Deployment), patches("a custom resource", Widget),
		removals("a Deployment", Deployment), removals("a custom resource", Widget),
		creations("a Deployment", Deployment), creations("a custom resource", Widget), makings(),
		statuses(), customStatuses(), scales(),
	} {
		maps.Copy(rows, part)
	}
	return rows
}

func named(what string, rows map[string]Row) map[string]Row {
	all := map[string]Row{}
	for name, row := range rows {
		all[what+": "+name] = row
	}
	return all
}

// put has what differs between a built-in kind and a custom one.
func put() map[string]Row {
	bare := []edit{replicas(3), without("resourceVersion"), without("uid")}
	return map[string]Row{
		"a Deployment: put without uid and resourceVersion is unconditional":       {Kind: Deployment, Method: http.MethodPut, Body: object(bare...), Want: moved},
		"a Deployment: put with resourceVersion 0 is unconditional":                {Kind: Deployment, Method: http.MethodPut, Body: object(replicas(3), meta("resourceVersion", "0")), Want: moved},
		"a Deployment: put of an annotation moves the generation":                  {Kind: Deployment, Method: http.MethodPut, Body: object(annotation), Want: moved},
		"a Deployment: put of negative replicas is invalid":                        {Kind: Deployment, Method: http.MethodPut, Body: object(replicas(-1)), Want: invalid(Unchanged, "FieldValueInvalid spec.replicas")},
		"a Deployment: put of negative replicas as a dry run is invalid":           {Kind: Deployment, Method: http.MethodPut, DryRun: true, Body: object(replicas(-1)), Want: invalid(Unchanged, "FieldValueInvalid spec.replicas")},
		"a custom resource: put without uid and resourceVersion is invalid":        {Kind: Widget, Method: http.MethodPut, Body: object(bare...), Want: invalid(Unchanged, noVersion)},
		"a custom resource: put with resourceVersion 0 is invalid":                 {Kind: Widget, Method: http.MethodPut, Body: object(replicas(3), meta("resourceVersion", "0")), Want: invalid(Unchanged, noVersion)},
		"a custom resource: put of an annotation does not move the generation":     {Kind: Widget, Method: http.MethodPut, Body: object(annotation), Want: written},
		"a custom resource: put without resourceVersion, with its uid, is invalid": {Kind: Widget, Method: http.MethodPut, Body: object(replicas(3), without("resourceVersion")), Want: invalid(Unchanged, noVersion)},
	}
}

func putBoth(what string, kind Kind) map[string]Row {
	row := func(want Answer, edits ...edit) Row {
		return Row{Kind: kind, Method: http.MethodPut, Body: object(edits...), Want: want}
	}
	dry := func(r Row) Row { r.DryRun = true; return r }
	absent := func(r Row) Row { r.Setup = Absent; return r }
	return named(what, map[string]Row{
		"put with uid and resourceVersion is stored":                      row(moved, replicas(3)),
		"put of nothing new is not stored":                                row(ok),
		"put of a label does not move the generation":                     row(written, label),
		"put of a status is not stored":                                   row(ok, status("replicas", int64(9))),
		"put without a creationTimestamp keeps it":                        row(moved, replicas(3), without("creationTimestamp")),
		"put as a dry run is not stored":                                  dry(row(ok, replicas(3))),
		"put with a stale resourceVersion conflicts":                      row(conflict, replicas(3), stale),
		"put with a stale resourceVersion conflicts as a dry run":         dry(row(conflict, replicas(3), stale)),
		"put with a stale resourceVersion conflicts, also of nothing new": row(conflict, stale),
		"put with a wrong uid conflicts":                                  row(conflict, replicas(3), foreign),
		"put with a wrong uid conflicts as a dry run":                     dry(row(conflict, replicas(3), foreign)),
		"put with a wrong uid and without resourceVersion conflicts":      row(conflict, replicas(3), foreign, without("resourceVersion")),
		"put with a wrong uid and a stale resourceVersion conflicts":      row(conflict, replicas(3), foreign, stale),
		"put with another name is bad":                                    row(bad, meta("name", "other")),
		"put with another namespace is bad":                               row(bad, meta("namespace", "other")),
		"put on what is not there, without uid":                           absent(row(missing, replicas(3), without("uid"))),
		"put on what is not there, without uid and resourceVersion":       absent(row(missing, replicas(3), without("uid"), without("resourceVersion"))),
		"put on what is not there, with uid":                              absent(row(missing, replicas(3))),
		"put on what is not there, with uid, as a dry run":                dry(absent(row(missing, replicas(3)))),
	})
}

// makings are PUTs of a kind of which one makes what is not there: only a uid keeps
// a write from making an object anew that was deleted meanwhile.
func makings() map[string]Row {
	row := func(want Answer, edits ...edit) Row {
		return Row{Kind: Service, Method: http.MethodPut, Body: object(edits...), Want: want}
	}
	dry := func(r Row) Row { r.DryRun = true; return r }
	absent := func(r Row) Row { r.Setup = Absent; return r }
	made := Answer{Code: http.StatusCreated, Effect: Made}
	refused := Answer{Code: http.StatusConflict, Reason: "Conflict", Effect: Missing}
	return named("a Service", map[string]Row{
		"put on what is not there, with a resourceVersion alone, makes it":           absent(row(made, without("uid"))),
		"put on what is not there, with neither, makes it":                           absent(row(made, without("uid"), without("resourceVersion"))),
		"put on what is not there, with a resourceVersion alone, as a dry run":       dry(absent(row(Answer{Code: http.StatusCreated, Effect: Missing}, without("uid")))),
		"put on what is not there, with uid and resourceVersion, conflicts":          absent(row(refused)),
		"put on what is not there, with uid alone, conflicts":                        absent(row(refused, without("resourceVersion"))),
		"put on what is not there, with uid and resourceVersion, conflicts when dry": dry(absent(row(refused))),
		"put of a label is stored":                                                   row(written, label),
		"put with a stale resourceVersion conflicts":                                 row(conflict, label, stale),
		"put with a wrong uid conflicts":                                             row(conflict, label, foreign),
		"put without uid, with the present resourceVersion, is stored":               row(written, label, without("uid")),
	})
}

func patches(what string, kind Kind) map[string]Row {
	json := func(want Answer, ops ...map[string]any) Row {
		return Row{Kind: kind, Method: http.MethodPatch, ContentType: jsonPatch, Body: patch(ops...), Want: want}
	}
	merging := func(want Answer, metadata map[string]any) Row {
		change := map[string]any{"metadata": metadata, "spec": map[string]any{"replicas": int64(3)}}
		return Row{Kind: kind, Method: http.MethodPatch, ContentType: mergePatch, Body: merge(change), Want: want}
	}
	dry := func(r Row) Row { r.DryRun = true; return r }
	absent := func(r Row) Row { r.Setup = Absent; return r }
	three := op("replace", "/spec/replicas", int64(3))
	return named(what, map[string]Row{
		"a JSON patch that tests uid and resourceVersion is stored":   json(moved, op("test", "/metadata/uid", "$UID"), op("test", "/metadata/resourceVersion", "$VERSION"), three),
		"a JSON patch as a dry run is not stored":                     dry(json(ok, three)),
		"a JSON patch that tests a wrong uid is rejected":             json(rejected, op("test", "/metadata/uid", otherUID), three),
		"a JSON patch that tests a wrong uid is rejected when dry":    dry(json(rejected, op("test", "/metadata/uid", otherUID), three)),
		"a JSON patch that tests an old resourceVersion is rejected":  json(rejected, op("test", "/metadata/resourceVersion", "$OLD"), three),
		"a JSON patch that removes what is not there is rejected":     json(rejected, op("remove", "/spec/nothing", nil)),
		"a JSON patch that sets an old resourceVersion conflicts":     json(conflict, op("replace", "/metadata/resourceVersion", "$OLD"), three),
		"a JSON patch that sets another uid is invalid":               json(invalid(Unchanged, immutableUID(kind)...), op("replace", "/metadata/uid", otherUID), three),
		"a JSON patch of what is not there":                           absent(json(missing, three)),
		"a merge patch with uid and resourceVersion is stored":        merging(moved, map[string]any{"uid": "$UID", "resourceVersion": "$VERSION"}),
		"a merge patch with nothing in its metadata is stored":        merging(moved, map[string]any{}),
		"a merge patch with a stale resourceVersion conflicts":        merging(conflict, map[string]any{"resourceVersion": "$OLD"}),
		"a merge patch with a stale resourceVersion conflicts dry":    dry(merging(conflict, map[string]any{"resourceVersion": "$OLD"})),
		"a merge patch with a wrong uid is invalid":                   merging(invalid(Unchanged, immutableUID(kind)...), map[string]any{"uid": otherUID}),
		"a merge patch with a wrong uid and the version is invalid":   merging(invalid(Unchanged, immutableUID(kind)...), map[string]any{"uid": otherUID, "resourceVersion": "$VERSION"}),
		"a merge patch with a wrong uid and a stale version conflict": merging(conflict, map[string]any{"uid": otherUID, "resourceVersion": "$OLD"}),
		"a merge patch of what is not there, with uid":                absent(merging(missing, map[string]any{"uid": "$UID"})),
	})
}

func removals(what string, kind Kind) map[string]Row {
	row := func(want Answer, preconditions map[string]any) Row {
		return Row{Kind: kind, Method: http.MethodDelete, Body: deleting(preconditions), Want: want}
	}
	dry := func(want Answer, preconditions map[string]any) Row {
		return Row{Kind: kind, Method: http.MethodDelete, Body: deletingDry(preconditions), Want: want}
	}
	inQuery := func(r Row) Row { r.DryRun = true; return r }
	on := func(s Setup, r Row) Row { r.Setup = s; return r }
	gone := Answer{Code: http.StatusOK, Effect: Missing}
	return named(what, map[string]Row{
		"delete without preconditions":                              row(gone, nil),
		"delete with uid and resourceVersion":                       row(gone, map[string]any{"uid": "$UID", "resourceVersion": "$VERSION"}),
		"delete as a dry run deletes nothing":                       dry(ok, map[string]any{"uid": "$UID"}),
		"delete as a dry run by the query, with a body: is one":     inQuery(row(gone, nil)),
		"delete as a dry run by the query, without a body, is none": inQuery(Row{Kind: kind, Method: http.MethodDelete, Want: ok}),
		"delete with a wrong uid conflicts":                         row(conflict, map[string]any{"uid": otherUID}),
		"delete with a wrong uid conflicts as a dry run":            dry(conflict, map[string]any{"uid": otherUID}),
		"delete with a stale resourceVersion conflicts":             row(conflict, map[string]any{"resourceVersion": "$OLD"}),
		"delete of what is not there":                               on(Absent, row(missing, map[string]any{"uid": "$UID"})),
		"delete of what a finalizer holds only marks it":            on(Held, row(Answer{Code: http.StatusOK, Effect: Ending}, nil)),
		"delete of what a finalizer holds, with a wrong uid":        on(Held, row(conflict, map[string]any{"uid": otherUID})),
	})
}

func creations(what string, kind Kind) map[string]Row {
	row := func(s Setup, want Answer, edits ...edit) Row {
		edits = append([]edit{without("resourceVersion"), without("uid")}, edits...)
		return Row{Kind: kind, Setup: s, Method: http.MethodPost, Body: object(edits...), Want: want}
	}
	dry := func(r Row) Row { r.DryRun = true; return r }
	made := Answer{Code: http.StatusCreated, Effect: Made}
	exists := Answer{Code: http.StatusConflict, Reason: "AlreadyExists", Effect: Unchanged}
	return named(what, map[string]Row{
		"post is stored":                               row(Absent, made),
		"post as a dry run is not stored":              dry(row(Absent, Answer{Code: http.StatusCreated, Effect: Missing})),
		"post with a uid is stored, under another":     row(Absent, made, foreign),
		"post with a resourceVersion is an error":      row(Absent, Answer{Code: http.StatusInternalServerError, Effect: Missing}, meta("resourceVersion", "1")),
		"post of what is there":                        row(Present, exists),
		"post of what is there, as a dry run":          dry(row(Present, exists)),
		"post with a name that is none is invalid":     row(Absent, invalid(Missing, "FieldValueInvalid metadata.name"), meta("name", "Not_A_Name")),
		"post without a name is invalid":               row(Absent, invalid(Missing, "FieldValueRequired metadata.name"), without("name")),
		"post in another namespace than its own":       row(Absent, Answer{Code: http.StatusBadRequest, Reason: "BadRequest", Effect: Missing}, meta("namespace", "other")),
		"post in a namespace that is not there":        row(NoNamespace, missing),
		"post in a namespace that is being deleted":    row(EndingNamespace, Answer{Code: http.StatusForbidden, Reason: "Forbidden", Causes: []string{"NamespaceTerminating metadata.namespace"}, Effect: Missing}),
		"post in a namespace that is being deleted, d": dry(row(EndingNamespace, Answer{Code: http.StatusForbidden, Reason: "Forbidden", Causes: []string{"NamespaceTerminating metadata.namespace"}, Effect: Missing})),
	})
}
