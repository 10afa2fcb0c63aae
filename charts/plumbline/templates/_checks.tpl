{{/* How often objects are checked and how many at once, in the spellings that values have. */}}

{{/* The value of two names, of which one may be left empty. Arguments: root, key. */}}
{{- define "plumbline.eitherName" -}}
{{- $own := index .root.Values.assessor .key | toString -}}
{{- $other := index .root.Values.controller .key | toString -}}
{{- if eq .key "driftThreshold" -}}
{{- $own = include "plumbline.percentage" $own -}}
{{- $other = include "plumbline.percentage" $other -}}
{{- end -}}
{{- if and $own $other (ne $own $other) -}}
{{- fail (printf "assessor.%s is %s and controller.%s is %s: both name the same setting, so give one of them" .key $own .key $other) -}}
{{- end -}}
{{ $own | default $other }}
{{- end }}

{{/* A share as a percentage, whether it was given as 20% or as 0.2. The argument is text. */}}
{{- define "plumbline.percentage" -}}
{{- if or (eq . "") (hasSuffix "%" .) -}}
{{ . }}
{{- else if regexMatch "^(0[.](0[1-9]|[1-9][0-9]?)|1([.]00?)?)$" . -}}
{{ printf "%d%%" (round (mulf (float64 .) 100) 0 | int) }}
{{- else -}}
{{- fail (printf "a drift threshold is %s: it must be a percentage from 1%% to 100%%, or a fraction from 0.01 to 1 with at most two decimals" .) -}}
{{- end -}}
{{- end }}

{{/* Arguments of the assessor. */}}
{{- define "plumbline.checkArgs" -}}
{{- with .Values.assessor.resyncPeriod }}
- --resync-period={{ . }}
{{- end }}
{{- with include "plumbline.eitherName" (dict "root" . "key" "driftInterval") }}
- --drift-interval={{ . }}
{{- end }}
{{- with include "plumbline.eitherName" (dict "root" . "key" "driftThreshold") }}
- --drift-threshold={{ . }}
{{- end }}
- --max-concurrent-checks={{ .Values.assessor.maxConcurrentChecks }}
{{- end }}
