{{- define "type" -}}
{{- $type := . -}}
{{- if markdownShouldRenderType $type -}}
### {{ $type.Name }}

{{ $type.Doc }}
{{ $rules := list -}}
{{- range index $type.Markers "kubebuilder:validation:XValidation" }}{{ $rules = append $rules (printf "%s%s" (ternary (printf "`%s`: " (trimPrefix "." .FieldPath)) "" (ne .FieldPath "")) .Message) }}{{ end -}}
{{- with $rules }}
Refused, each with its message:
{{ range . }}
- {{ . }}
{{- end }}
{{ end -}}
{{- if $type.SortedReferences }}
Used in: {{ range $i, $ref := $type.SortedReferences }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $ref }}{{ end }}
{{ end -}}
{{- if $type.Members }}
| Field | Meaning | Bounds |
|---|---|---|
{{- range $type.Members }}
{{- if ne .Name "metadata" }}
| `{{ .Name }}`<br />_{{ if eq (markdownRenderType .Type) "integer array" }}base64 string{{ else }}{{ markdownRenderType .Type }}{{ end }}_ | {{ .Doc | replace "\n" " " | markdownRenderFieldDoc }} | {{ template "bounds" . }} |
{{- end }}
{{- end }}
{{ end -}}
{{- if $type.EnumValues }}
| Value | Meaning |
|---|---|
{{- range $type.EnumValues }}
| `{{ .Name }}` | {{ regexReplaceAll "^[A-Za-z]+:? " .Doc "" | trim | replace "\n" " " | markdownRenderFieldDoc }} |
{{- end }}
{{ end -}}
{{- end -}}
{{- end -}}
