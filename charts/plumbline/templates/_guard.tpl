{{/*
What guard.resources means to webhooks, policies and roles. Registration is
static: nothing at run time adds or removes a rule.
*/}}

{{/* Namespaces that are never seen: a webhook that intercepts what it needs to
start would keep the cluster down. The list is fixed and the processes know the
same one: where nothing is stamped, a stamp must not be believed. */}}
{{- define "plumbline.namespaceSelector" -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values:
      {{- list "kube-system" "kube-node-lease" "kube-public" .Release.Namespace | uniq | toYaml | nindent 6 }}
{{- end }}

{{/* Annotations of all webhook configurations. */}}
{{- define "plumbline.webhookAnnotations" -}}
{{- $annotations := .Values.webhookConfiguration.annotations -}}
{{- if eq .Values.webhook.certificate.mode "CertManager" -}}
{{- $annotations = merge (dict "cert-manager.io/inject-ca-from" (printf "%s/plumbline-webhook" .Release.Namespace)) $annotations -}}
{{- end -}}
{{ toYaml $annotations }}
{{- end }}

{{/* One rule. Arguments: group, version, resource, operations, and scope where it
is not Namespaced. */}}
{{- define "plumbline.rule" -}}
- apiGroups: [{{ .group | quote }}]
  apiVersions: [{{ .version | quote }}]
  resources: [{{ .resource | quote }}]
  operations: [{{ join ", " .operations }}]
  scope: {{ .scope | default "Namespaced" }}
{{- end }}

{{/* One rule for a resource of our own. Arguments: resource, operations, scope. */}}
{{- define "plumbline.ownRule" -}}
{{ include "plumbline.rule" (merge (dict "group" "plumbline.dev" "version" "v1alpha1") .) }}
{{- end }}

{{/* The kinds of guard.resources as a JSON list of objects: a category stands for the kinds
that files/categories.json has under its name. A single kind that a category contains counts
once, in the version of its own entry. */}}
{{- define "plumbline.guardedKinds" -}}
{{- $categories := .Files.Get "files/categories.json" | fromJson -}}
{{- $kinds := list -}}
{{- $singles := dict -}}
{{- range .Values.guard.resources -}}
{{- if not (kindIs "string" .) -}}
{{- $kinds = append $kinds . -}}
{{- $_ := set $singles (printf "%s/%s" .group .resource) true -}}
{{- end -}}
{{- end -}}
{{- range .Values.guard.resources -}}
{{- if kindIs "string" . -}}
{{- range get $categories . -}}
{{- if not (hasKey $singles (printf "%s/%s" .group .resource)) -}}
{{- $kinds = append $kinds (omit . "kind") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{ $kinds | toJson }}
{{- end }}

{{/* The guarded kinds themselves. Arguments: root, operations, and withoutPods to leave Pod out. */}}
{{- define "plumbline.objectRules" -}}
{{- $operations := .operations -}}
{{- $withoutPods := .withoutPods -}}
{{- range include "plumbline.guardedKinds" .root | fromJsonArray }}
{{- if not (and $withoutPods (eq .group "") (eq .resource "pods")) }}
{{ include "plumbline.rule" (dict "group" .group "version" .version "resource" .resource "operations" $operations) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Whether guard.resources has the kind Pod. */}}
{{- define "plumbline.registersPods" -}}
{{- range include "plumbline.guardedKinds" . | fromJsonArray -}}
{{- if and (eq .group "") (eq .resource "pods") -}}
true
{{- end -}}
{{- end -}}
{{- end }}

{{/* The guarded kinds as the assessor's flag has them: group/version/resource. */}}
{{- define "plumbline.registeredResources" -}}
{{- $all := list -}}
{{- range include "plumbline.guardedKinds" . | fromJsonArray -}}
{{- $all = append $all (printf "%s/%s/%s" .group .version .resource) -}}
{{- end -}}
{{ join "," $all }}
{{- end }}

{{/* One subresource of every guarded kind. Arguments: root, subresource. */}}
{{- define "plumbline.subresourceRules" -}}
{{- $subresource := .subresource -}}
{{- range include "plumbline.guardedKinds" .root | fromJsonArray }}
{{ include "plumbline.rule" (dict "group" .group "version" .version "resource" (printf "%s/%s" .resource $subresource) "operations" (list "UPDATE")) }}
{{- end }}
{{- end }}

{{/* Ways around the object itself: /scale, and subresources of pods. */}}
{{- define "plumbline.bypassRules" -}}
{{- range include "plumbline.guardedKinds" . | fromJsonArray }}
{{- if .scale }}
{{ include "plumbline.rule" (dict "group" .group "version" .version "resource" (printf "%s/scale" .resource) "operations" (list "UPDATE")) }}
{{- end }}
{{- end }}
{{- range .Values.guard.podSubresources }}
{{ include "plumbline.rule" (dict "group" "" "version" "v1" "resource" (printf "pods/%s" .) "operations" (list "UPDATE")) }}
{{- end }}
{{- end }}

{{/* Whether the writer is stamped inside the API server. */}}
{{- define "plumbline.writerPolicy" -}}
{{- $served := .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" -}}
{{- if or (has .Values.policies.writerStamp (list "Policy" "Both")) (and (eq .Values.policies.writerStamp "Auto") $served) -}}
true
{{- end -}}
{{- end }}

{{/* Whether the webhook stamps the writer: where the policy does not, or is about to take
over or to go. */}}
{{- define "plumbline.writerWebhook" -}}
{{- if or (eq .Values.policies.writerStamp "Both") (not (include "plumbline.writerPolicy" .)) -}}
true
{{- end -}}
{{- end }}

{{/* Sorted, so that the stamp is the same for the same groups. */}}
{{- define "plumbline.stampedGroups" -}}
{{- .Values.guard.stampedGroups | uniq | sortAlpha | toJson -}}
{{- end }}

{{/* The groups of the writer that the stamp keeps, as CEL. */}}
{{- define "plumbline.writerGroups" -}}
{{ include "plumbline.stampedGroups" . }}.filter(g, g in request.userInfo.?groups.orValue([])).join(",")
{{- end }}

{{/* The annotations of guarded objects whose changes the webhook looks at. The stamps of
applies are not among them: the assessor alone reads those. */}}
{{- define "plumbline.annotations" -}}
{{ list "plumbline.dev/break-glass-reason" "plumbline.dev/resync-period" "plumbline.dev/spec-hash" "plumbline.dev/writer" "plumbline.dev/writer-groups" | toJson }}
{{- end }}

{{/* The annotations of guarded objects that no write of /status changes: all that Plumbline
writes or reads, as in pkg/apis/plumbline/v1alpha1/annotations.go, and the one in which
kubectl keeps what was applied. */}}
{{- define "plumbline.protectedAnnotations" -}}
{{ concat (include "plumbline.annotations" . | fromJsonArray) (list "plumbline.dev/applied" "plumbline.dev/applier" "plumbline.dev/applier-groups" "kubectl.kubernetes.io/last-applied-configuration") | sortAlpha | toJson }}
{{- end }}
