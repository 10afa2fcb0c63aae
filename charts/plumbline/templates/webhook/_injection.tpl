{{/* What the webhook is told about the proxies that pods get. */}}
{{- define "plumbline.injectConfig" -}}
{{- $inject := .Values.mesh.inject -}}
{{- $proxy := .Values.mesh.proxy.image -}}
proxyImage: {{ if $proxy.digest }}{{ printf "%s@%s" $proxy.repository $proxy.digest | quote }}{{ else }}{{ printf "%s:%s" $proxy.repository $proxy.tag | quote }}{{ end }}
redirectImage: {{ include "plumbline.imageOf" (dict "root" . "name" "redirect" "image" $inject.redirectImage) | quote }}
pullPolicy: {{ .Values.image.pullPolicy }}
mode: {{ $inject.mode }}
uid: {{ $inject.uid | int64 }}
concurrency: {{ $inject.concurrency | int64 }}
resources:
  {{- toYaml $inject.resources | nindent 2 }}
tokenLifetime: {{ $inject.tokenLifetime }}
xdsHost: plumbline-xds.{{ .Release.Namespace }}.svc
xdsPort: 15010
ipv6: {{ $inject.ipv6 }}
{{- end }}

{{/* The webhook of pods that asked for a proxy. Arguments: root, name. */}}
{{- define "plumbline.injectWebhook" -}}
- name: {{ .name }}
  clientConfig:
    service: {name: plumbline-webhook, namespace: {{ .root.Release.Namespace }}, path: /inject, port: 443}
  admissionReviewVersions: [v1]
  sideEffects: None
  # Others may change the pod afterwards.
  reinvocationPolicy: IfNeeded
  # A pod that asked for a proxy must not run without one.
  failurePolicy: Fail
  matchPolicy: Equivalent
  timeoutSeconds: 5
  rules:
    {{- include "plumbline.rule" (dict "group" "" "version" "v1" "resource" "pods" "operations" (list "CREATE")) | nindent 4 }}
{{- end }}
