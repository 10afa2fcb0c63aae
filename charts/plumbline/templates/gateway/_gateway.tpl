{{/* What the discovery server is told about where proxies listen. */}}
{{- define "plumbline.faceArgs" -}}
- --ipv6={{ .Values.mesh.inject.ipv6 }}
{{- if .Values.gateway.enabled }}
- --gateway-port={{ .Values.gateway.port | int64 }}
- --gateway-account=plumbline-gateway
- --gateway-hops={{ .Values.gateway.trustedHops | int64 }}
- {{ printf "--gateway-trusted-cidrs=%s" (join "," .Values.gateway.trustedCIDRs) | quote }}
{{- with .Values.gateway.hosts }}
- {{ printf "--gateway-hosts=%s" (toJson .) | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* The bootstrap that package inject makes, with what is this installation's: a test
compares it with what the package makes for the same. */}}
{{- define "plumbline.gatewayBootstrap" -}}
{{- $bootstrap := .Files.Get "files/gateway/bootstrap.json" | trim
  | replace "xds.invalid" (printf "plumbline-xds.%s.svc" .Release.Namespace)
  | replace "\"1000000007\"" (printf "\"%d\"" (int64 .Values.gateway.maxConnections)) -}}
{{- if .Values.mesh.inject.ipv6 -}}
{{- $bootstrap = $bootstrap | replace "\"address\":\"0.0.0.0\",\"port_value\":15021" "\"address\":\"::\",\"port_value\":15021,\"ipv4_compat\":true" -}}
{{- end -}}
{{- $bootstrap -}}
{{- end }}

{{/* All files of the gateways. */}}
{{- define "plumbline.gatewayFiles" -}}
bootstrap.json: {{ include "plumbline.gatewayBootstrap" . | quote }}
token.json: {{ .Files.Get "files/gateway/token.json" | trim | quote }}
ca.json: {{ .Files.Get "files/gateway/ca.json" | trim | quote }}
{{- end }}
