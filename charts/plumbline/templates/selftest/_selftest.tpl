{{/*
Where the self-test's object lives. Not the release's own namespace: admission
excludes that one, so a self-test there would prove the watch alone.
*/}}
{{- define "plumbline.selftestNamespace" -}}
{{ .Values.selftest.namespace | default (printf "%s-selftest" .Release.Namespace) }}
{{- end }}
