{{/* What Pod Security "restricted" asks of a pod and of a container. */}}
{{- define "plumbline.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "plumbline.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Where pods run: the same for every component. */}}
{{- define "plumbline.scheduling" -}}
{{- $component := index .root.Values .component }}
{{- with .root.Values.image.pullSecrets }}
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
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels:
        {{- include "plumbline.selector" . | nindent 8 }}
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
- --metrics-address=:8080
- --health-address=:8081
- --log-format={{ .Values.log.format }}
- --log-level={{ .Values.log.level }}
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
