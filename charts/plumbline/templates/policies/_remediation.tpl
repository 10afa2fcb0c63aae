{{/*
Pieces of the policies on the kinds of remediation; CEL has no functions.
*/}}

{{/*
Kinds that no plan may have as a target, whoever makes it: those that hold
credentials or give rights, those that bound the API server itself, and our own.
A list of what is denied and not of what is allowed, because a plan names kinds
and guard.resources names resources, and only the API server knows which belongs
to which. What is allowed is decided behind it: the executor's role has the
resources of guard.resources and no others.
*/}}
{{- define "plumbline.remediation.deniedGroups" -}}
{{ list "plumbline.dev" "rbac.authorization.k8s.io" "admissionregistration.k8s.io" "apiextensions.k8s.io" "apiregistration.k8s.io" "authentication.k8s.io" "authorization.k8s.io" "certificates.k8s.io" "coordination.k8s.io" "events.k8s.io" "flowcontrol.apiserver.k8s.io" "node.k8s.io" | toJson }}
{{- end }}

{{/* The same of the core group. */}}
{{- define "plumbline.remediation.deniedCoreKinds" -}}
{{ list "Secret" "ServiceAccount" "Node" "Namespace" "PersistentVolume" "Event" "Endpoints" "Binding" "ComponentStatus" | toJson }}
{{- end }}

{{/* Whether a user may speak for these groups. Argument: a CEL expression. */}}
{{- define "plumbline.remediation.ownGroups" -}}
{{ . }}.all(g, g in request.userInfo.?groups.orValue([]))
{{- end }}

{{/* Whether owners, finalizers and labels stay as they are. An owner that does not
exist would have the garbage collector delete the object. */}}
{{- define "plumbline.remediation.metadataKept" -}}
(object.metadata.?ownerReferences.orValue([]) == oldObject.metadata.?ownerReferences.orValue([])
&& object.metadata.?finalizers.orValue([]) == oldObject.metadata.?finalizers.orValue([])
&& object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({}))
{{- end }}

{{/* The binding of a policy. Arguments: root, name. */}}
{{- define "plumbline.remediation.binding" -}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}
  labels:
    {{- include "plumbline.labels" (dict "root" .root "component" "policies") | nindent 4 }}
spec:
  policyName: {{ .name }}
  validationActions: [Deny]
{{- end }}
