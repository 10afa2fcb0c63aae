{{/*
Names are fixed, not derived from the release: the webhook configurations, the
policies and the CRDs exist once per cluster, so there is one release per
cluster, and everything that names an identity may name it outright.
*/}}

{{- define "plumbline.labels" -}}
app.kubernetes.io/name: plumbline
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/part-of: plumbline
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A selector is immutable, so it holds nothing that an upgrade may change. */}}
{{- define "plumbline.selector" -}}
app.kubernetes.io/name: plumbline
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Image of one of our own binaries. */}}
{{- define "plumbline.image" -}}
{{- include "plumbline.imageOf" (dict "root" .root "name" .component "image" (index .root.Values .component).image) -}}
{{- end }}

{{/* The same by the name of the binary and the values of its image. */}}
{{- define "plumbline.imageOf" -}}
{{- $repository := .image.repository | default (printf "%s/%s" .root.Values.image.registry .name) -}}
{{- if .image.digest -}}
{{ $repository }}@{{ .image.digest }}
{{- else -}}
{{ $repository }}:{{ .image.tag | default .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* Whether one process assesses and carries plans out. */}}
{{- define "plumbline.oneProcess" -}}
{{- if and .Values.executor.enabled (not .Values.assessor.split) -}}yes{{- end -}}
{{- end }}

{{/* The account of the assessor. In one process it is the executor's, because that
is the one which owners of namespaces bind, and by which evidence is verified. */}}
{{- define "plumbline.assessorAccount" -}}
{{- if include "plumbline.oneProcess" . -}}plumbline-executor{{- else -}}plumbline-assessor{{- end -}}
{{- end }}

{{/* The user name by which the API server knows the assessor. */}}
{{- define "plumbline.assessorUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "plumbline.assessorAccount" . }}
{{- end }}

{{/* The user name of the executor. It is known whether the executor runs or not,
because what only it may write must stay so. */}}
{{- define "plumbline.executorUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:plumbline-executor
{{- end }}
