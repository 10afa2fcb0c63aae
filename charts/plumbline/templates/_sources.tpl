{{/* Prometheus and Alertmanager: where they are, and how they are known. */}}

{{/* Fails if the address of a source and its Secrets do not fit. Give name and source. */}}
{{- define "plumbline.checkSource" -}}
{{- $s := .source -}}
{{- if and (not $s.url) (or $s.caSecret $s.tokenSecret) -}}
{{- fail (printf "metrics.%s: caSecret and tokenSecret are of no use without a url" .name) -}}
{{- end -}}
{{- if and $s.url (not (hasPrefix "https://" $s.url)) (or $s.caSecret $s.tokenSecret) -}}
{{- fail (printf "metrics.%s.url: caSecret and tokenSecret need https://, or everybody on the way could read the token" .name) -}}
{{- end -}}
{{- end }}

{{- define "plumbline.sourceArgs" -}}
- --{{ .name }}-url={{ .source.url }}
{{- if .source.caSecret }}
- --{{ .name }}-ca-file=/var/run/secrets/plumbline-{{ .name }}-ca/ca.crt
{{- end }}
{{- if .source.tokenSecret }}
- --{{ .name }}-token-file=/var/run/secrets/plumbline-{{ .name }}-token/token
{{- end }}
{{- end }}

{{- define "plumbline.sourceVolumeMounts" -}}
{{- if .source.caSecret }}
- {name: {{ .name }}-ca, mountPath: /var/run/secrets/plumbline-{{ .name }}-ca, readOnly: true}
{{- end }}
{{- if .source.tokenSecret }}
- {name: {{ .name }}-token, mountPath: /var/run/secrets/plumbline-{{ .name }}-token, readOnly: true}
{{- end }}
{{- end }}

{{- define "plumbline.sourceVolumes" -}}
{{- $name := .name -}}
{{- with .source.caSecret }}
- name: {{ $name }}-ca
  secret:
    secretName: {{ . }}
    items: [{key: ca.crt, path: ca.crt}]
{{- end }}
{{- with .source.tokenSecret }}
- name: {{ $name }}-token
  secret:
    secretName: {{ . }}
    items: [{key: token, path: token}]
{{- end }}
{{- end }}

{{/* The rule of a NetworkPolicy that opens the ports of a source. Give source and root. */}}
{{- define "plumbline.sourceEgress" -}}
{{- $at := urlParse .source.url -}}
{{- $port := trimPrefix ":" (regexFind ":[0-9]+$" $at.host) | default (ternary "443" "80" (eq $at.scheme "https")) -}}
- ports:
    {{- range .source.ports | default (list $port) }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
  {{- with .root.Values.metrics.allowedNetworks }}
  to:
    {{- range . }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  {{- end }}
{{- end }}

{{/* The names of the sources that assessments ask; the text is empty without one. */}}
{{- define "plumbline.assessmentSources" -}}
{{- $metrics := .Values.metrics -}}
{{- range list "prometheus" "alertmanager" -}}
{{- include "plumbline.checkSource" (dict "name" . "source" (get $metrics .)) -}}
{{- end -}}
{{- if and $metrics.alertmanager.url (not .Values.assessor.effectiveness.enabled) -}}
{{- fail "metrics.alertmanager.url is for assessments: set assessor.effectiveness.enabled to true, or take the url away" -}}
{{- end -}}
{{- if .Values.assessor.effectiveness.enabled -}}
{{- $names := list -}}
{{- range list "prometheus" "alertmanager" -}}
{{- if (get $metrics .).url -}}{{- $names = append $names . -}}{{- end -}}
{{- end -}}
{{ join "," $names }}
{{- end -}}
{{- end }}

{{- define "plumbline.assessmentArgs" -}}
{{- $metrics := .Values.metrics -}}
{{- range include "plumbline.assessmentSources" . | splitList "," | compact }}
{{ include "plumbline.sourceArgs" (dict "name" . "source" (get $metrics .)) }}
{{- if and (eq . "alertmanager") $metrics.alertmanager.watchdog }}
- {{ printf "--alertmanager-watchdog=%s" $metrics.alertmanager.watchdog | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "plumbline.assessmentVolumeMounts" -}}
{{- $metrics := .Values.metrics -}}
{{- range include "plumbline.assessmentSources" . | splitList "," | compact }}
{{- include "plumbline.sourceVolumeMounts" (dict "name" . "source" (get $metrics .)) }}
{{- end }}
{{- end }}

{{- define "plumbline.assessmentVolumes" -}}
{{- $metrics := .Values.metrics -}}
{{- range include "plumbline.assessmentSources" . | splitList "," | compact }}
{{- include "plumbline.sourceVolumes" (dict "name" . "source" (get $metrics .)) }}
{{- end }}
{{- end }}

{{/* Whether the assessor calls servers that only outside authorities vouch for. */}}
{{- define "plumbline.assessorCallsOut" -}}
{{- $metrics := .Values.metrics -}}
{{- $out := or .Values.notifications.secrets (include "plumbline.oneProcess" .) -}}
{{- range include "plumbline.assessmentSources" . | splitList "," | compact -}}
{{- if not (get $metrics .).caSecret -}}{{- $out = true -}}{{- end -}}
{{- end -}}
{{- if $out -}}
true
{{- end -}}
{{- end }}
