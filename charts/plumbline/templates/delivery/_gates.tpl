{{/* Whether webhooks of rollouts can be asked; the text is empty if not. */}}
{{- define "plumbline.gateSecrets" -}}
{{- if and .Values.mesh.enabled .Values.delivery.enabled -}}
{{ join "," .Values.delivery.gateSecrets }}
{{- end -}}
{{- end }}

{{/* Whether the discovery server makes signed requests, of webhooks or to routers; the text is empty if not. */}}
{{- define "plumbline.signedRequests" -}}
{{- if and .Values.routers.enabled .Values.mesh.enabled -}}
true
{{- else -}}
{{ include "plumbline.gateSecrets" . }}
{{- end -}}
{{- end }}

{{/* Whether the discovery server serves Traefiks; the text is empty if not. */}}
{{- define "plumbline.servesTraefiks" -}}
{{- if and .Values.routers.traefik.enabled (not .Values.routers.enabled) -}}
{{- fail "routers.traefik.enabled is for releases that name TrafficRouters: set routers.enabled to true, or routers.traefik.enabled to false" -}}
{{- end -}}
{{- if and .Values.routers.traefik.enabled .Values.mesh.enabled -}}
true
{{- end -}}
{{- end }}

{{/* The Prometheus that queries of rollouts are asked of; the text is empty without one. */}}
{{- define "plumbline.prometheusURL" -}}
{{- include "plumbline.checkSource" (dict "name" "prometheus" "source" .Values.metrics.prometheus) -}}
{{- if and .Values.metrics.prometheus.url (not (or .Values.delivery.enabled .Values.assessor.effectiveness.enabled)) -}}
{{- fail "metrics.prometheus.url is for queries of rollouts and for assessments: set delivery.enabled or assessor.effectiveness.enabled to true, or take the url away" -}}
{{- end -}}
{{- if and .Values.mesh.enabled .Values.delivery.enabled -}}
{{ .Values.metrics.prometheus.url }}
{{- end -}}
{{- end }}

{{- define "plumbline.gateArgs" -}}
{{- if include "plumbline.prometheusURL" . }}
{{ include "plumbline.sourceArgs" (dict "name" "prometheus" "source" .Values.metrics.prometheus) }}
{{- end }}
{{- if .Values.delivery.enabled }}
- --headroom-percent={{ .Values.delivery.headroomPercent }}
{{- end }}
{{- if and .Values.delivery.enabled .Values.delivery.inlineQueries }}
- --inline-queries
{{- end }}
{{- with include "plumbline.gateSecrets" . }}
- --gate-secrets={{ . }}
{{- end }}
{{- if .Values.routers.enabled }}
- --routers
{{- with .Values.routers.secrets }}
- --router-secrets={{ join "," . }}
{{- end }}
{{- end }}
{{- if include "plumbline.servesTraefiks" . }}
- --traefik-address=:15011
{{- end }}
{{- if include "plumbline.signedRequests" . }}
{{- with $.Values.notifications.allowedNetworks }}
- --notify-allowed-networks={{ join "," . }}
{{- end }}
{{- if $.Values.notifications.plainHTTP }}
- --notify-plain-http=true
{{- end }}
{{- end }}
{{- end }}

{{/* Whether the discovery server calls servers that only outside authorities vouch for. */}}
{{- define "plumbline.gatesCallOut" -}}
{{- if or (include "plumbline.signedRequests" .) (and (include "plumbline.prometheusURL" .) (not .Values.metrics.prometheus.caSecret)) -}}
true
{{- end -}}
{{- end }}

{{- define "plumbline.gateVolumeMounts" -}}
{{- if include "plumbline.gatesCallOut" . }}
{{- include "plumbline.outboundVolumeMount" . }}
{{- end }}
{{- if include "plumbline.prometheusURL" . }}
{{- include "plumbline.sourceVolumeMounts" (dict "name" "prometheus" "source" .Values.metrics.prometheus) }}
{{- end }}
{{- end }}

{{- define "plumbline.gateVolumes" -}}
{{- if include "plumbline.gatesCallOut" . }}
{{- include "plumbline.outboundVolume" . }}
{{- end }}
{{- if include "plumbline.prometheusURL" . }}
{{- include "plumbline.sourceVolumes" (dict "name" "prometheus" "source" .Values.metrics.prometheus) }}
{{- end }}
{{- end }}
