{{/* Whether evidence goes to the claim that the chart makes. */}}
{{- define "plumbline.evidenceClaim" -}}
{{- if not (or .Values.executor.evidence.url .Values.executor.evidence.volume.source) -}}yes{{- end -}}
{{- end }}

{{/* Where evidence is kept. */}}
{{- define "plumbline.evidenceURL" -}}
{{ .Values.executor.evidence.url | default "file:///var/lib/plumbline/evidence" }}
{{- end }}

{{/* How a pod that holds the evidence is followed by the next one. */}}
{{- define "plumbline.executorStrategy" -}}
{{- if include "plumbline.evidenceClaim" . -}}
# The new pod could wait for the volume that the old one holds on another node.
strategy: {type: Recreate}
{{- else -}}
strategy:
  type: RollingUpdate
  rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
{{- end }}
{{- end }}

{{/* A cap as the executor reads it: empty is none, and 0 is 0. */}}
{{- define "plumbline.cap" -}}
{{- if or (kindIs "invalid" .) (eq (toString .) "") -}}-1{{- else -}}{{ int . }}{{- end -}}
{{- end }}

{{/* What the role execute needs to know, wherever it runs. */}}
{{- define "plumbline.executorArgs" -}}
- {{ include "plumbline.evidenceURL" . | printf "--evidence=%s" | quote }}
- --evidence-key-file=/var/run/secrets/plumbline-evidence/key.pem
- --serve-evidence={{ .Values.executor.evidence.serve }}
{{- if .Values.executor.evidence.oldKeysSecret }}
- --evidence-old-keys-file=/var/run/secrets/plumbline-evidence-old/keys.pem
{{- end }}
{{- if and .Values.mesh.enabled .Values.delivery.enabled }}
- --release-works=true
{{- end }}
{{- if .Values.mesh.enabled }}
- --mesh=true
{{- end }}
{{- if .Values.assessor.effectiveness.enabled }}
- --await-verdicts=true
{{- end }}
{{- range $flag, $cap := dict "max-concurrent" "maxConcurrent" "max-per-hour" "maxPerHour" "max-per-day" "maxPerDay" }}
- --{{ $flag }}={{ include "plumbline.cap" (get $.Values.executor.caps $cap) }}
{{- end }}
{{- end }}

{{- define "plumbline.executorEnvFrom" -}}
{{- if and .Values.executor.evidence.url .Values.executor.evidence.credentialsSecret -}}
envFrom:
  - secretRef: {name: {{ .Values.executor.evidence.credentialsSecret }}}
{{- end }}
{{- end }}

{{- define "plumbline.executorVolumeMounts" -}}
- {name: evidence-key, mountPath: /var/run/secrets/plumbline-evidence, readOnly: true}
{{- if .Values.executor.evidence.oldKeysSecret }}
- {name: evidence-old-keys, mountPath: /var/run/secrets/plumbline-evidence-old, readOnly: true}
{{- end }}
{{- if not .Values.executor.evidence.url }}
- {name: evidence, mountPath: /var/lib/plumbline/evidence}
{{- end }}
{{- end }}

{{- define "plumbline.executorVolumes" -}}
- name: evidence-key
  secret:
    secretName: {{ .Values.executor.evidence.existingSecret | default "plumbline-evidence" }}
    items: [{key: key.pem, path: key.pem}]
{{- with .Values.executor.evidence.oldKeysSecret }}
- name: evidence-old-keys
  secret:
    secretName: {{ . }}
    items: [{key: keys.pem, path: keys.pem}]
{{- end }}
{{- if include "plumbline.evidenceClaim" . }}
- name: evidence
  persistentVolumeClaim: {claimName: plumbline-evidence}
{{- else if not .Values.executor.evidence.url }}
- name: evidence
  {{- toYaml .Values.executor.evidence.volume.source | nindent 2 }}
{{- end }}
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
{{- $component := ternary "executor" "assessor" .Values.assessor.split -}}
{{- if and (include "plumbline.evidenceClaim" .) (gt (int (index .Values $component).replicas) 1) (not (has "ReadWriteMany" $volume.accessModes)) -}}
{{- fail (printf "%s.replicas: a second replica could not mount the evidence on another node; set it to 1, or use executor.evidence.url, or accessModes [ReadWriteMany]" $component) -}}
{{- end -}}
{{- range .Values.executor.namespaces -}}
{{- if has . (list "kube-system" "kube-node-lease" "kube-public" $.Release.Namespace) -}}
{{- fail (printf "executor.namespaces: %s is excluded from admission, so nothing in it is guarded" .) -}}
{{- end -}}
{{- end -}}
{{- end }}
