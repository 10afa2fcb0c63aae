{{- define "plumbline.podSecurityContext" -}}
{{- toYaml .Values.podSecurityContext }}
{{- end }}

{{- define "plumbline.containerSecurityContext" -}}
{{- toYaml .Values.securityContext }}
{{- end }}

{{/* Where pods run: the same for every component. */}}
{{- define "plumbline.scheduling" -}}
{{- $component := index .root.Values .component }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $component.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $component.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $component.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $component.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
Replicas spread over nodes, but a cluster of one node still runs them all. The
template hash keeps the old pods of a rolling update out of the count.
*/}}
{{- define "plumbline.spread" -}}
{{- $anywhere := list (dict "maxSkew" 1 "topologyKey" "kubernetes.io/hostname" "whenUnsatisfiable" "ScheduleAnyway" "matchLabelKeys" (list "pod-template-hash")) -}}
{{- $selector := dict "matchLabels" (include "plumbline.selector" . | fromYaml) -}}
topologySpreadConstraints:
{{- range (index .root.Values .component).topologySpreadConstraints | default $anywhere }}
  {{- list (merge dict . (dict "labelSelector" $selector)) | toYaml | nindent 2 }}
{{- end }}
{{- end }}

{{/* Annotations of a component's service account, or nothing. */}}
{{- define "plumbline.accountAnnotations" -}}
{{- with (index .root.Values .component).serviceAccount.annotations -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "plumbline.extraVolumeMounts" -}}
{{- with (index .root.Values .component).extraVolumeMounts }}{{ toYaml . }}{{ end }}
{{- end }}

{{- define "plumbline.extraVolumes" -}}
{{- with (index .root.Values .component).extraVolumes }}{{ toYaml . }}{{ end }}
{{- end }}

{{- define "plumbline.podLabels" -}}
{{- include "plumbline.labels" . }}
{{- with (index .root.Values .component).podLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Arguments that all of our servers share. */}}
{{- define "plumbline.serverArgs" -}}
- --namespace=$(POD_NAMESPACE)
- --metrics-address=:{{ (index .root.Values .component).metricsPort | default 8080 }}
- --health-address=:{{ (index .root.Values .component).healthPort | default 8081 }}
- --log-format={{ .root.Values.log.format }}
- --log-level={{ .root.Values.log.level }}
{{- end }}

{{/* Variables that all of our servers share. */}}
{{- define "plumbline.serverEnv" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
{{- with (index .root.Values .component).goMemoryLimit }}
- name: GOMEMLIMIT
  value: {{ . }}
{{- end }}
{{- with (index .root.Values .component).extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "plumbline.probes" -}}
startupProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 1
  failureThreshold: 60
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 5
livenessProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 10
  failureThreshold: 6
{{- end }}
