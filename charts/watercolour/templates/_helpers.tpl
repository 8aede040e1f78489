{{/* Name of the release's objects: the release's own, made to say what it is. */}}
{{- define "watercolour.name" -}}
{{- if contains "watercolour" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-watercolour" (.Release.Name | trunc 28 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{/* Labels by which a component's pods are selected. Takes a dict of root and component. */}}
{{- define "watercolour.selector" -}}
app.kubernetes.io/name: watercolour
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end -}}

{{/* Labels of every object. Takes a dict of root and component. */}}
{{- define "watercolour.labels" -}}
{{ include "watercolour.selector" . }}
app.kubernetes.io/part-of: watercolour
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name (.root.Chart.Version | replace "+" "_") }}
{{- end -}}

{{/* An image behind image.registry, unless it names a registry itself. Takes a dict of root and image. */}}
{{- define "watercolour.image" -}}
{{- $first := first (splitList "/" .image) -}}
{{- $named := and (contains "/" .image) (or (contains "." $first) (contains ":" $first) (eq $first "localhost")) -}}
{{- if and .root.Values.image.registry (not $named) -}}
{{- printf "%s/%s" (trimSuffix "/" .root.Values.image.registry) .image -}}
{{- else -}}
{{- .image -}}
{{- end -}}
{{- end -}}

{{/* What a component's block says about where its pods run. */}}
{{- define "watercolour.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* Pull Secrets of a pod. */}}
{{- define "watercolour.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Security of a pod and of a container: what Pod Security calls restricted, and a read-only root. */}}
{{- define "watercolour.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "watercolour.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Namespaces with runs, as a JSON list in "names"; empty is every namespace. */}}
{{- define "watercolour.namespaces" -}}
{{- if eq .Values.rbac.mode "single" -}}
{{- dict "names" (list .Release.Namespace) | toJson -}}
{{- else if eq .Values.rbac.mode "namespaces" -}}
{{- dict "names" .Values.rbac.namespaces | toJson -}}
{{- else -}}
{{- dict "names" (list) | toJson -}}
{{- end -}}
{{- end -}}

{{/* Egress rule to the API server. */}}
{{- define "watercolour.reachApi" -}}
- to:
    {{- range .Values.networkPolicy.apiServerCIDRs }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  ports:
    {{- range .Values.networkPolicy.apiServerPorts }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
{{- end -}}
