{{/*
Pieces of the policies that keep a run from being superseded; CEL has no functions.
*/}}

{{/* The states of a run that is under way. */}}
{{- define "plumbline.delivery.statesUnderWay" -}}
{{ list "Created" "Deploying" "Running" "Promoting" | toJson }}
{{- end }}

{{/* Whether a person has asked for the end of the run, and was not refused. Arguments: rollout
and status, as CEL expressions whose values are optional. */}}
{{- define "plumbline.delivery.rollsBack" -}}
{{ .rollout }}.?control.?verb.orValue("") == "Rollback"
&& {{ .rollout }}.?control.?run == {{ .status }}.?run.?number
&& !({{ .status }}.?handled.?refusal.orValue("") != "" && {{ .status }}.?handled.?verb.orValue("") == "Rollback"
&& {{ .status }}.?handled.?run == {{ .rollout }}.?control.?run && {{ .status }}.?handled.?attempt == {{ .rollout }}.?control.?attempt)
{{- end }}
