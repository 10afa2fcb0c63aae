{{/*
CEL about applies: writes in which a user states the desired state of an object. Such a
write changes no content if the object has that state already. The API server fills in
managedFields before it asks a policy, and names no operation. An update takes fields from
the entry of an apply, keeps the time of the entry, and gives it no field. So the request
was an apply if its manager's entry has other fields, and another time or a further field:
an apply of the live state keeps the time.

Entries of applies, and their fields, have no bound in the API server, and each writer of
the object may fill them. Bounded here are the entries (64), and, of an entry that changed
and kept its time, the levels (16) and the fields of each changed one (1,024). Beyond a
bound, a server-side apply is not stamped. Where the cost of these expressions exceeds what
the API server allows, because very many changed fields lie beside each other, the API
server refuses the write. A dry run is not stamped: a stamp would be a difference in each
kubectl diff.
*/}}

{{/* The statements of a write: none, the annotation of kubectl apply, a server-side apply, or
both. */}}
{{- define "plumbline.applied" -}}
(oldObject == null || request.?dryRun.orValue(false) ? ""
: (object.metadata.?annotations[?"kubectl.kubernetes.io/last-applied-configuration"].hasValue()
&& object.metadata.?annotations[?"kubectl.kubernetes.io/last-applied-configuration"] != oldObject.metadata.?annotations[?"kubectl.kubernetes.io/last-applied-configuration"] ? " last-applied" : "")
+ ({{ include "plumbline.fewManagers" . }}
&& request.?options.?fieldManager.orValue("") != ""
&& object.metadata.?managedFields.orValue([]).exists(e, {{ include "plumbline.isApply" "e" }} && e.?manager == request.?options.?fieldManager
&& !oldObject.metadata.?managedFields.orValue([]).exists(o, {{ include "plumbline.isApply" "o" }} && o.?manager == e.?manager && (o.?fieldsV1 == e.?fieldsV1
|| o.?time == e.?time && ![[e.?fieldsV1.orValue({}), o.?fieldsV1.orValue({})]].exists(p16, {{ include "plumbline.fieldsGrew" 16 }}))))
? " manager=" + request.options.fieldManager : ""))
{{- end }}

{{/* Whether a write that states nothing makes the last statement void: it changes content, or
the entries of applies. */}}
{{- define "plumbline.voidsApplied" -}}
(oldObject == null || !request.?dryRun.orValue(false) && ({{ include "plumbline.contentChanged" . }}
|| ({{ include "plumbline.fewManagers" . }}
? object.metadata.?managedFields.orValue([]).filter(e, {{ include "plumbline.isApply" "e" }}).map(e, [e.?manager, e.?apiVersion, e.?fieldsV1])
!= oldObject.metadata.?managedFields.orValue([]).filter(e, {{ include "plumbline.isApply" "e" }}).map(e, [e.?manager, e.?apiVersion, e.?fieldsV1])
: object.metadata.?managedFields != oldObject.metadata.?managedFields)))
{{- end }}

{{- define "plumbline.fewManagers" -}}
object.metadata.?managedFields.orValue([]).size() <= 64 && oldObject.metadata.?managedFields.orValue([]).size() <= 64
{{- end }}

{{/* Whether an entry of managedFields is that of an apply to the object itself. */}}
{{- define "plumbline.isApply" -}}
{{ . }}.?operation.orValue("") == "Apply" && {{ . }}.?subresource.orValue("") == ""
{{- end }}

{{/* Whether the first of two sets of fields has a field that the second lacks, down to a
number of levels. Sets are maps of maps, and CEL knows no recursion. Argument: the number of
levels, which also names the pair of sets. */}}
{{- define "plumbline.fieldsGrew" -}}
{{- $n := int . -}}
{{- if eq $n 0 -}}
false
{{- else -}}
{{- $p := printf "p%d" $n -}}{{- $k := printf "k%d" $n -}}
{{ $p }}[0].size() <= 1024 && {{ $p }}[0].exists({{ $k }}, !({{ $k }} in {{ $p }}[1]) || {{ $p }}[0][{{ $k }}] != {{ $p }}[1][{{ $k }}]
&& [[{{ $p }}[0][{{ $k }}], {{ $p }}[1][{{ $k }}]]].exists(p{{ sub $n 1 }}, {{ include "plumbline.fieldsGrew" (sub $n 1) }}))
{{- end -}}
{{- end }}

{{/* Content is what the hash covers: all but these four. */}}
{{- define "plumbline.contentChanged" -}}
(oldObject == null
|| object.exists(k, !(k in ["apiVersion", "kind", "metadata", "status"]) && (!(k in oldObject) || object[k] != oldObject[k]))
|| oldObject.exists(k, !(k in ["apiVersion", "kind", "metadata", "status"]) && !(k in object)))
{{- end }}

{{/* One operation of a JSON patch: an annotation gets an optional value, or goes.
Arguments: key, value. */}}
{{- define "plumbline.patchStamp" -}}
({{ .value }}.hasValue()
? [JSONPatch{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey("{{ .key }}"), value: {{ .value }}.value()}]
: (object.metadata.?annotations[?"{{ .key }}"].hasValue()
? [JSONPatch{op: "remove", path: "/metadata/annotations/" + jsonpatch.escapeKey("{{ .key }}")}] : []))
{{- end }}
