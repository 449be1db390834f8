{{/* The name that all objects begin with. */}}
{{- define "swirl.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "swirl.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "swirl.labels" -}}
{{ include "swirl.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "swirl.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "swirl.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "swirl.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Settings that stand for both processes: where files of credentials are. */}}
{{- define "swirl.env" -}}
- name: SWIRL_CONFIG
  value: /etc/swirl/swirl.yaml
{{- if .Values.redis.passwordSecret.name }}
- name: SWIRL_REDIS_PASSWORD_FILE
  value: /etc/swirl/redis/{{ .Values.redis.passwordSecret.key }}
{{- end }}
{{- if .Values.redis.tls.secretName }}
- name: SWIRL_REDIS_TLS_CA
  value: /etc/swirl/redis-tls/ca.crt
{{- if .Values.redis.tls.clientCertificate }}
- name: SWIRL_REDIS_TLS_CERT
  value: /etc/swirl/redis-tls/tls.crt
- name: SWIRL_REDIS_TLS_KEY
  value: /etc/swirl/redis-tls/tls.key
{{- end }}
{{- end }}
{{- if .Values.nats.passwordSecret.name }}
- name: SWIRL_NATS_PASSWORD_FILE
  value: /etc/swirl/nats/{{ .Values.nats.passwordSecret.key }}
{{- end }}
{{- if .Values.nats.credentialsSecret.name }}
- name: SWIRL_NATS_CREDENTIALS_FILE
  value: /etc/swirl/nats-creds/{{ .Values.nats.credentialsSecret.key }}
{{- end }}
{{- if .Values.nats.tls.secretName }}
- name: SWIRL_NATS_TLS_CA
  value: /etc/swirl/nats-tls/ca.crt
{{- if .Values.nats.tls.clientCertificate }}
- name: SWIRL_NATS_TLS_CERT
  value: /etc/swirl/nats-tls/tls.crt
- name: SWIRL_NATS_TLS_KEY
  value: /etc/swirl/nats-tls/tls.key
{{- end }}
{{- end }}
{{- end -}}

{{/* The secrets that are mounted for both: folder under /etc/swirl and the secret's name, a line each. */}}
{{- define "swirl.mounts" -}}
- name: config
  mountPath: /etc/swirl/swirl.yaml
  subPath: swirl.yaml
  readOnly: true
{{- range $folder, $secret := include "swirl.secrets" . | fromYaml }}
- name: {{ $folder }}
  mountPath: /etc/swirl/{{ $folder }}
  readOnly: true
{{- end }}
{{- end -}}

{{- define "swirl.volumes" -}}
- name: config
  configMap:
    name: {{ include "swirl.fullname" . }}
{{- range $folder, $secret := include "swirl.secrets" . | fromYaml }}
- name: {{ $folder }}
  secret:
    secretName: {{ $secret }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{- define "swirl.secrets" -}}
{{- with .Values.redis.passwordSecret.name }}
redis: {{ . | quote }}
{{- end }}
{{- with .Values.redis.tls.secretName }}
redis-tls: {{ . | quote }}
{{- end }}
{{- with .Values.nats.passwordSecret.name }}
nats: {{ . | quote }}
{{- end }}
{{- with .Values.nats.credentialsSecret.name }}
nats-creds: {{ . | quote }}
{{- end }}
{{- with .Values.nats.tls.secretName }}
nats-tls: {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "swirl.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "swirl.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Of a pod: what the values of `worker` and `coordinator` have in common. */}}
{{- define "swirl.scheduling" -}}
{{- with .part.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.topologySpreadKeys }}
topologySpreadConstraints:
  {{- range . }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "swirl.selector" $.root | nindent 8 }}
        app.kubernetes.io/component: {{ $.component }}
  {{- end }}
{{- end }}
{{- end -}}
