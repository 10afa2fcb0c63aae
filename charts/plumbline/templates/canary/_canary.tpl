{{/*
Where the canary's object lives. Not the release's own namespace: admission
excludes that one, so a canary there would prove the watch alone.
*/}}
{{- define "plumbline.canaryNamespace" -}}
{{ .Values.canary.namespace | default (printf "%s-canary" .Release.Namespace) }}
{{- end }}
