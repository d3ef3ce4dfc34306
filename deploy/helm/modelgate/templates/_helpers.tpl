{{- define "modelgate.name" -}}
{{- printf "%s" .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "modelgate.selector" -}}
app.kubernetes.io/name: modelgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "modelgate.labels" -}}
{{ include "modelgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "modelgate.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{- define "modelgate.config" -}}
{{- $fixed := dict "server" (dict "listen" "0.0.0.0:8080" "admin_listen" "0.0.0.0:9464" "data_dir" "/data") -}}
{{- toYaml (mergeOverwrite (deepCopy .Values.config) $fixed) -}}
{{- end -}}
