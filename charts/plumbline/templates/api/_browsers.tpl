{{/* Arguments, mounts and volumes by which the API serves browsers; empty without session keys. */}}
{{- define "plumbline.apiBrowserArgs" -}}
{{- with .Values.api }}
{{- if .sessionKeysSecret -}}
- --api-session-keys-file=/etc/plumbline/sessions/keys
{{- if .oidc.issuer }}
- --api-oidc-issuer={{ .oidc.issuer }}
- --api-oidc-client-id={{ .oidc.clientID }}
- --api-oidc-scopes={{ join "," .oidc.scopes }}
{{- if .oidc.credentialsSecret }}
- --api-oidc-client-secret-file=/etc/plumbline/oidc/client-secret
{{- end }}
{{- if or .oidc.caSecret $.Values.outbound.caSecret }}
- --api-oidc-ca-file=/etc/plumbline/issuer/ca.crt
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "plumbline.apiBrowserMounts" -}}
{{- with .Values.api }}
{{- if .sessionKeysSecret -}}
- {name: session-keys, mountPath: /etc/plumbline/sessions, readOnly: true}
{{- if .oidc.issuer }}
{{- if .oidc.credentialsSecret }}
- {name: oidc-credentials, mountPath: /etc/plumbline/oidc, readOnly: true}
{{- end }}
{{- if or .oidc.caSecret $.Values.outbound.caSecret }}
- {name: issuer-ca, mountPath: /etc/plumbline/issuer, readOnly: true}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "plumbline.apiBrowserVolumes" -}}
{{- with .Values.api }}
{{- if .sessionKeysSecret -}}
- name: session-keys
  secret:
    secretName: {{ .sessionKeysSecret }}
    items: [{key: keys, path: keys}]
{{- if .oidc.issuer }}
{{- with .oidc.credentialsSecret }}
- name: oidc-credentials
  secret:
    secretName: {{ . }}
    items: [{key: client-secret, path: client-secret}]
{{- end }}
{{- with .oidc.caSecret | default $.Values.outbound.caSecret }}
- name: issuer-ca
  secret:
    secretName: {{ . }}
    items: [{key: ca.crt, path: ca.crt}]
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
