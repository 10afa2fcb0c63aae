{{/*
Pieces of the Deny policy that its expressions repeat; CEL has no functions.
*/}}

{{/* Whether the caller belongs to a Writers value. Argument: a CEL expression. */}}
{{- define "plumbline.deny.writers" -}}
({{ . }}.?users.orValue([]).exists(u, u == request.userInfo.username)
|| {{ . }}.?serviceAccounts.orValue([]).exists(a, request.userInfo.username == "system:serviceaccount:" + a.namespace + ":" + a.name)
|| {{ . }}.?serviceAccountNamespaces.orValue([]).exists(n, request.userInfo.username.startsWith("system:serviceaccount:" + n + ":") && request.userInfo.username.split(":").size() == 4 && !request.userInfo.username.endsWith(":"))
|| {{ . }}.?groups.orValue([]).exists(g, g in request.userInfo.?groups.orValue([])))
{{- end }}

{{/* Whether an object has more owners than expressions look through: whoever writes
an object could otherwise use up the budget of an expression, which lets the write
through. Such an object counts as guarded, and as no controller's product. Argument: a
CEL expression. */}}
{{- define "plumbline.deny.manyOwners" -}}
({{ . }}.metadata.?ownerReferences.orValue([]).size() > 64)
{{- end }}

{{/* The group of an apiVersion. Argument: a CEL expression. */}}
{{- define "plumbline.deny.group" -}}
({{ . }}.contains("/") ? {{ . }}.split("/")[0] : "")
{{- end }}

{{/* Whether the request is a question of the assessor. */}}
{{- define "plumbline.deny.probe" -}}
request.resource.group == "plumbline.dev"
{{- end }}

{{/* Whether two maps are equal but for one key. Arguments: a, b, key. */}}
{{- define "plumbline.deny.equalBut" -}}
({{ .a }}.all(k, k == {{ .key | quote }} || (k in {{ .b }} && {{ .a }}[k] == {{ .b }}[k]))
&& {{ .b }}.all(k, k == {{ .key | quote }} || k in {{ .a }}))
{{- end }}

{{/* Whether anything changed that the hash covers. The sizes keep its cost in
bounds; only a custom kind has so many keys. */}}
{{- define "plumbline.deny.contentChanged" -}}
(size(object) > 64 || size(oldObject) > 64
|| object.exists(k, !(k in ["apiVersion", "kind", "metadata", "status"]) && (!(k in oldObject) || object[k] != oldObject[k]))
|| oldObject.exists(k, !(k in ["apiVersion", "kind", "metadata", "status"]) && !(k in object)))
{{- end }}

{{- define "plumbline.deny.ownersChanged" -}}
(object.metadata.?ownerReferences.orValue([]) != oldObject.metadata.?ownerReferences.orValue([]))
{{- end }}

{{- define "plumbline.deny.reasonChanged" -}}
(object.metadata.?annotations[?"plumbline.dev/break-glass-reason"] != oldObject.metadata.?annotations[?"plumbline.dev/break-glass-reason"])
{{- end }}

{{/* Users whom no Deny guard refuses. The executor puts back what was authorized,
and nothing else. */}}
{{- define "plumbline.deny.exemptUsers" -}}
{{- $executor := ternary (list (include "plumbline.executorUser" .)) (list) .Values.executor.enabled -}}
{{ concat .Values.policies.systemUsers .Values.policies.deny.exemptUsers $executor | uniq | toJson }}
{{- end }}
