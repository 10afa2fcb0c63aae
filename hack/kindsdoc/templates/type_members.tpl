{{- /* bounds of a field: what its schema says, its default, and the messages of
       its rules. crd-ref-docs gives a field the rules of its type, too; those
       stand at the type. */ -}}
{{- define "bounds" -}}
{{- $parts := list -}}
{{- range .Validation -}}
{{- if eq . "Required: {}" }}{{ $parts = append $parts "required" -}}
{{- else if or (eq . "Optional: {}") (eq . "Type: string") (hasPrefix "items:XValidation" .) -}}
{{- else if hasPrefix "Maximum: " . }}{{ $parts = append $parts (printf "Maximum: %d" (trimPrefix "Maximum: " . | float64 | int64)) -}}
{{- else }}{{ $parts = append $parts (markdownRenderFieldDoc .) }}{{ end -}}
{{- end -}}
{{- if .Default }}{{ $parts = append $parts (printf "default `%s`" .Default) }}{{ end -}}
{{- $ofType := list -}}
{{- with .Type }}{{ range index .Markers "kubebuilder:validation:XValidation" }}{{ $ofType = append $ofType .Message }}{{ end -}}
{{- with .UnderlyingType }}{{ range index .Markers "kubebuilder:validation:XValidation" }}{{ $ofType = append $ofType .Message }}{{ end }}{{ end }}{{ end -}}
{{- range index .Markers "kubebuilder:validation:XValidation" }}{{ if not (has .Message $ofType) }}{{ $parts = append $parts (markdownRenderFieldDoc .Message) }}{{ end }}{{ end -}}
{{- range index .Markers "kubebuilder:validation:items:XValidation" }}{{ $parts = append $parts (printf "each: %s" (markdownRenderFieldDoc .Message)) }}{{ end -}}
{{- join "<br />" $parts -}}
{{- end -}}
