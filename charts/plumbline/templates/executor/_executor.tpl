{{/* Whether evidence goes to the claim that the chart makes. */}}
{{- define "plumbline.evidenceClaim" -}}
{{- if not (or .Values.executor.evidence.url .Values.executor.evidence.volume.source) -}}yes{{- end -}}
{{- end }}

{{/* Where evidence is kept. */}}
{{- define "plumbline.evidenceURL" -}}
{{ .Values.executor.evidence.url | default "file:///var/lib/plumbline/evidence" }}
{{- end }}

{{/* Authorities that servers outside are known by; the images carry none. */}}
{{- define "plumbline.outboundEnv" -}}
{{- if .Values.outbound.caSecret -}}
- name: SSL_CERT_FILE
  value: /var/run/secrets/plumbline-outbound-ca/ca.crt
{{- end }}
{{- end }}

{{- define "plumbline.outboundVolumeMount" -}}
{{- if .Values.outbound.caSecret -}}
- {name: outbound-ca, mountPath: /var/run/secrets/plumbline-outbound-ca, readOnly: true}
{{- end }}
{{- end }}

{{- define "plumbline.outboundVolume" -}}
{{- with .Values.outbound.caSecret -}}
- name: outbound-ca
  secret:
    secretName: {{ . }}
    items: [{key: ca.crt, path: ca.crt}]
{{- end }}
{{- end }}

{{/* What those that tell people need to know; nothing where nobody is told. */}}
{{- define "plumbline.notificationArgs" -}}
{{- if and .Values.notifications.secrets .Values.notifications.allowedNetworks }}
- --notify-allowed-networks={{ join "," .Values.notifications.allowedNetworks }}
{{- end }}
{{- if and .Values.notifications.secrets .Values.notifications.plainHTTP }}
- --notify-plain-http=true
{{- end }}
{{- end }}

{{/* What would not work, or would lose evidence without a word. */}}
{{- define "plumbline.checkExecutor" -}}
{{- $volume := .Values.executor.evidence.volume -}}
{{- range $kind := list "emptyDir" "ephemeral" -}}
{{- if and (hasKey $volume.source $kind) (not $volume.mayBeLost) -}}
{{- fail (printf "executor.evidence.volume.source: an %s volume goes with its pod, and the evidence with it; set executor.evidence.volume.mayBeLost to true if that is meant" $kind) -}}
{{- end -}}
{{- end -}}
{{- if and (include "plumbline.evidenceClaim" .) (gt (int .Values.executor.replicas) 1) (not (has "ReadWriteMany" $volume.accessModes)) -}}
{{- fail "executor.replicas: a second replica could not mount the evidence on another node; use executor.evidence.url, or accessModes [ReadWriteMany]" -}}
{{- end -}}
{{- range .Values.executor.namespaces -}}
{{- if has . (list "kube-system" "kube-node-lease" "kube-public" $.Release.Namespace) -}}
{{- fail (printf "executor.namespaces: %s is excluded from admission, so nothing in it is guarded" .) -}}
{{- end -}}
{{- end -}}
{{- end }}
