{{/*
Lets through what changes anything that Plumbline watches: content (all that the
hash covers), labels (selectors), owners (root objects) and our annotations.
Status writes of controllers and applies that change nothing never leave the API
server. Our annotations are a closed list: a loop over all annotations of an object
would cost the API server more than linear time in what a tenant puts there. The
same text, with its reasons, is in docs/reference/admission.md.
*/}}
{{- define "plumbline.matchConditions" -}}
matchConditions:
  - name: watched-content-changed
    expression: >-
      oldObject == null || object == null
      || object.exists(k, !(k in ["apiVersion", "kind", "metadata", "status"])
      && (!(k in oldObject) || object[k] != oldObject[k]))
      || oldObject.exists(k, !(k in ["apiVersion", "kind", "metadata", "status"]) && !(k in object))
      || object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({})
      || object.metadata.?ownerReferences.orValue([]) != oldObject.metadata.?ownerReferences.orValue([])
      || {{ include "plumbline.annotations" . }}.exists(k,
      object.metadata.?annotations[?k] != oldObject.metadata.?annotations[?k])
  {{- if include "plumbline.registersPods" . }}
  # A controller's pods come and go with each rollout, and have no Baseline.
  - name: not-a-controllers-pod
    expression: >-
      !(request.resource.group == "" && request.resource.resource == "pods" && request.?subResource.orValue("") == ""
      && (request.operation == "DELETE" || request.userInfo.username in {{ concat (list "system:kube-controller-manager") .Values.policies.deny.controllerUsers | uniq | toJson }})
      && {{ include "plumbline.ofController" "(oldObject == null ? object : oldObject)" | nindent 6 | trim }})
  {{- end }}
{{- end }}

{{/* Whether a pod names a built-in controller as its owner. Argument: a CEL expression. */}}
{{- define "plumbline.ofController" -}}
(!{{ include "plumbline.deny.manyOwners" . }} && {{ . }}.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false)
&& ({{ include "plumbline.deny.group" "o.apiVersion" }} + "/" + o.kind)
in ["apps/ReplicaSet", "apps/StatefulSet", "apps/DaemonSet", "batch/Job", "/ReplicationController"]))
{{- end }}
