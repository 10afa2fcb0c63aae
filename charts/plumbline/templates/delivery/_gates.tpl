{{/* Whether webhooks of rollouts can be asked; the text is empty if not. */}}
{{- define "plumbline.gateSecrets" -}}
{{- if and .Values.mesh.enabled .Values.delivery.enabled -}}
{{ join "," .Values.delivery.gateSecrets }}
{{- end -}}
{{- end }}

{{/* The Prometheus that queries of rollouts are asked of; the text is empty without one. */}}
{{- define "plumbline.prometheusURL" -}}
{{- $p := .Values.metrics.prometheus -}}
{{- if and (not $p.url) (or $p.caSecret $p.tokenSecret) -}}
{{- fail "metrics.prometheus: caSecret and tokenSecret are of no use without a url" -}}
{{- end -}}
{{- if and $p.url (not (hasPrefix "https://" $p.url)) (or $p.caSecret $p.tokenSecret) -}}
{{- fail "metrics.prometheus.url: caSecret and tokenSecret need https://, or everybody on the way could read the token" -}}
{{- end -}}
{{- if and $p.url (not .Values.delivery.enabled) -}}
{{- fail "metrics.prometheus.url is for queries of rollouts: set delivery.enabled to true, or take the url away" -}}
{{- end -}}
{{- if .Values.mesh.enabled -}}
{{ $p.url }}
{{- end -}}
{{- end }}

{{/* The port of that Prometheus. */}}
{{- define "plumbline.prometheusPort" -}}
{{- $at := urlParse .Values.metrics.prometheus.url -}}
{{- trimPrefix ":" (regexFind ":[0-9]+$" $at.host) | default (ternary "443" "80" (eq $at.scheme "https")) -}}
{{- end }}

{{- define "plumbline.gateArgs" -}}
{{- with include "plumbline.prometheusURL" . }}
- --prometheus-url={{ . }}
{{- end }}
{{- with .Values.metrics.prometheus.caSecret }}
- --prometheus-ca-file=/var/run/secrets/plumbline-prometheus-ca/ca.crt
{{- end }}
{{- with .Values.metrics.prometheus.tokenSecret }}
- --prometheus-token-file=/var/run/secrets/plumbline-prometheus-token/token
{{- end }}
{{- if .Values.delivery.enabled }}
- --headroom-percent={{ .Values.delivery.headroomPercent }}
{{- end }}
{{- if and .Values.delivery.enabled .Values.delivery.inlineQueries }}
- --inline-queries
{{- end }}
{{- with include "plumbline.gateSecrets" . }}
- --gate-secrets={{ . }}
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
{{- if or (include "plumbline.gateSecrets" .) (and (include "plumbline.prometheusURL" .) (not .Values.metrics.prometheus.caSecret)) -}}
true
{{- end -}}
{{- end }}

{{- define "plumbline.gateVolumeMounts" -}}
{{- if include "plumbline.gatesCallOut" . }}
{{- include "plumbline.outboundVolumeMount" . }}
{{- end }}
{{- if .Values.metrics.prometheus.caSecret }}
- {name: prometheus-ca, mountPath: /var/run/secrets/plumbline-prometheus-ca, readOnly: true}
{{- end }}
{{- if .Values.metrics.prometheus.tokenSecret }}
- {name: prometheus-token, mountPath: /var/run/secrets/plumbline-prometheus-token, readOnly: true}
{{- end }}
{{- end }}

{{- define "plumbline.gateVolumes" -}}
{{- if include "plumbline.gatesCallOut" . }}
{{- include "plumbline.outboundVolume" . }}
{{- end }}
{{- with .Values.metrics.prometheus.caSecret }}
- name: prometheus-ca
  secret:
    secretName: {{ . }}
    items: [{key: ca.crt, path: ca.crt}]
{{- end }}
{{- with .Values.metrics.prometheus.tokenSecret }}
- name: prometheus-token
  secret:
    secretName: {{ . }}
    items: [{key: token, path: token}]
{{- end }}
{{- end }}
