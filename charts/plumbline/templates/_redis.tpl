{{/* Secret that holds the password for our clients, or nothing. */}}
{{- define "plumbline.redisSecret" -}}
{{- if .Values.redis.enabled -}}
{{ .Values.redis.auth.existingSecret | default "plumbline-redis" }}
{{- else if .Values.redis.external.address -}}
{{ .Values.redis.external.existingSecret }}
{{- end -}}
{{- end }}

{{- define "plumbline.redisArgs" -}}
{{- if .Values.redis.enabled -}}
- --redis-address=plumbline-redis.{{ .Release.Namespace }}.svc:6379
- --redis-username=plumbline
{{- else if .Values.redis.external.address -}}
- {{ printf "--redis-address=%s" .Values.redis.external.address | quote }}
{{- if ne .Values.redis.external.mode "Standalone" }}
- --redis-mode={{ .Values.redis.external.mode }}
{{- end }}
{{- with .Values.redis.external.masterName }}
- --redis-master-name={{ . }}
{{- end }}
{{- with .Values.redis.external.username }}
- {{ printf "--redis-username=%s" . | quote }}
{{- end }}
{{- if .Values.redis.external.tls.enabled }}
- --redis-tls
- --redis-ca-file=/var/run/secrets/plumbline-redis-ca/ca.crt
{{- if .Values.redis.external.tls.clientSecret }}
- --redis-client-certificate-file=/var/run/secrets/plumbline-redis-client/tls.crt
- --redis-client-key-file=/var/run/secrets/plumbline-redis-client/tls.key
{{- end }}
{{- end }}
{{- else -}}
- --redis-address=
{{- end }}
- --redis-key-prefix={{ .Values.redis.keyPrefix }}
- --redis-timeout={{ .Values.redis.timeout | default "50ms" }}
{{- if include "plumbline.redisSecret" . }}
- --redis-password-file=/var/run/secrets/plumbline-redis/password
{{- if include "plumbline.redisSentinelKey" . }}
- --redis-sentinel-password-file=/var/run/secrets/plumbline-redis/sentinel-password
{{- end }}
{{- end }}
{{- end }}

{{/* Key of the password of the Sentinels, or nothing. */}}
{{- define "plumbline.redisSentinelKey" -}}
{{- if not .Values.redis.enabled -}}
{{ .Values.redis.external.sentinelPasswordKey }}
{{- end -}}
{{- end }}

{{/* The passwords alone: the client has no use for the server's ACL. */}}
{{- define "plumbline.redisVolume" -}}
{{- with include "plumbline.redisSecret" . -}}
- name: redis-password
  secret:
    secretName: {{ . }}
    items: [{key: {{ ternary "password" $.Values.redis.external.passwordKey $.Values.redis.enabled }}, path: password}
      {{- with include "plumbline.redisSentinelKey" $ }}, {key: {{ . }}, path: sentinel-password}{{ end }}]
{{- end }}
{{- with include "plumbline.redisCA" . }}
- name: redis-ca
  secret:
    secretName: {{ . }}
    items: [{key: ca.crt, path: ca.crt}]
{{- end }}
{{- if include "plumbline.redisCA" . }}
{{- with .Values.redis.external.tls.clientSecret }}
- name: redis-client
  secret:
    secretName: {{ . }}
    items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
{{- end }}
{{- end }}
{{- end }}

{{/* Secret that holds the authority an external Redis is known by, or nothing. */}}
{{- define "plumbline.redisCA" -}}
{{- if and (not .Values.redis.enabled) .Values.redis.external.address .Values.redis.external.tls.enabled -}}
{{ .Values.redis.external.tls.caSecret }}
{{- end -}}
{{- end }}

{{- define "plumbline.redisVolumeMount" -}}
{{- if include "plumbline.redisSecret" . -}}
- {name: redis-password, mountPath: /var/run/secrets/plumbline-redis, readOnly: true}
{{- end }}
{{- if include "plumbline.redisCA" . }}
- {name: redis-ca, mountPath: /var/run/secrets/plumbline-redis-ca, readOnly: true}
{{- if .Values.redis.external.tls.clientSecret }}
- {name: redis-client, mountPath: /var/run/secrets/plumbline-redis-client, readOnly: true}
{{- end }}
{{- end }}
{{- end }}

{{/*
What the Redis user may do: streams under one prefix, and, for the executor, two
scripts over the copies of ledgers; what a script calls is checked as if the user
called it. It can neither flush nor list nor configure, whoever gets hold of the
password.
*/}}
{{- define "plumbline.redisACL" -}}
user default off
user plumbline on #{{ .password | sha256sum }} ~{{ .root.Values.redis.keyPrefix }}:* resetchannels -@all +@stream +@connection +time -@admin -@dangerous
{{- if .root.Values.executor.enabled }} (~{{ .root.Values.redis.keyPrefix }}:mirror:* -@all +eval +evalsha +eval_ro +evalsha_ro +hget +hmget +hset +del +expire){{ end }}
{{- if .root.Values.notifications.secrets }} (~{{ .root.Values.redis.keyPrefix }}:told:* -@all +set +getex){{ end }}
{{ end }}

{{/*
The password of this release: the one in the cluster if there is one, so that an
upgrade keeps it; a new one otherwise. Computed once per render and kept in the
values, because every call of randAlphaNum gives another.
*/}}
{{- define "plumbline.redisPassword" -}}
{{- if not (hasKey .Values.redis "generatedPassword") -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace "plumbline-redis" -}}
{{- $kept := dig "data" "password" "" ($secret | default dict) | b64dec -}}
{{- $_ := set .Values.redis "generatedPassword" ($kept | default (randAlphaNum 40)) -}}
{{- end -}}
{{ .Values.redis.generatedPassword }}
{{- end }}

{{/*
Changes when the password or the ACL does: Redis reads its ACL at start, and the
pods that read the Secret start again with it.
*/}}
{{- define "plumbline.redisChecksum" -}}
{{- if and .Values.redis.enabled (not .Values.redis.auth.existingSecret) -}}
plumbline.dev/redis-checksum: {{ include "plumbline.redisACL" (dict "root" . "password" (include "plumbline.redisPassword" .)) | sha256sum | trunc 16 | quote }}
{{- end }}
{{- end }}

{{/* TCP ports at which clients reach an external Redis, one a line. */}}
{{- define "plumbline.redisPorts" -}}
{{- range .Values.redis.external.address | splitList "," }}
{{ regexFind "[0-9]+$" . }}
{{- end }}
{{- range .Values.redis.external.ports }}
{{ . }}
{{- end }}
{{- end }}
