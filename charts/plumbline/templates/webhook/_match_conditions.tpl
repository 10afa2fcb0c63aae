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
{{- end }}
