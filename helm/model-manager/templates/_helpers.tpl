{{/* The name of the chart. */}}
{{- define "model-manager.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of the release's objects. */}}
{{- define "model-manager.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "model-manager.name" . -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The same with room for the word after it, for names that are cut at 63. Takes (list $ "word"). */}}
{{- define "model-manager.suffixed" -}}
{{- $suffix := index . 1 -}}
{{- printf "%s-%s" (include "model-manager.fullname" (first .) | trunc (int (sub 62 (len $suffix))) | trimSuffix "-") $suffix -}}
{{- end -}}

{{/* The name of objects outside of the release's namespace, where other releases have theirs. */}}
{{- define "model-manager.foreignName" -}}
{{- printf "%s-%s" .Release.Namespace (include "model-manager.fullname" .) -}}
{{- end -}}

{{- define "model-manager.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: model-manager
{{- end -}}

{{/* What tells the pods of a component from others; never changes. Takes (list $ "component"). */}}
{{- define "model-manager.selector" -}}
{{- $root := first . -}}
app.kubernetes.io/name: {{ include "model-manager.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "model-manager.image" -}}
{{- with .Values.image -}}
{{- $repository := ternary (printf "%s/%s" .registry .repository) .repository (ne .registry "") -}}
{{- printf "%s:%s" $repository (toString (.tag | default $.Chart.AppVersion)) -}}
{{- end -}}
{{- end -}}

{{- define "model-manager.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (ternary (include "model-manager.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{/* The backends to serve, as JSON. */}}
{{- define "model-manager.backends" -}}
{{- ternary (.Values.backends | default list) (list .Values.backend) (eq .Values.backend "") | toJson -}}
{{- end -}}

{{/* Says `true` where the backend is served. Takes (list $ "kind"). */}}
{{- define "model-manager.serves" -}}
{{- if has (index . 1) (include "model-manager.backends" (first .) | fromJsonArray) }}true{{ end -}}
{{- end -}}

{{/* What the program itself says of itself, as JSON. */}}
{{- define "model-manager.facts" -}}
{{- .Files.Get "files/gateway.yaml" | fromYaml | toJson -}}
{{- end -}}

{{/* Says `true` where the gateway works with the cluster that it is in; that of a demo is made up. */}}
{{- define "model-manager.usesKubernetes" -}}
{{- if and .Values.kubernetes.enabled (not .Values.demo.enabled) }}true{{ end -}}
{{- end -}}

{{/* Says `true` where there are several pods. */}}
{{- define "model-manager.hasReplicas" -}}
{{- if gt (int .Values.replicaCount) 1 }}true{{ end -}}
{{- end -}}

{{/* The Secret with the token for the Hub; empty for none. */}}
{{- define "model-manager.hubSecret" -}}
{{- if .Values.kserve.hf.token -}}
{{- include "model-manager.foreignName" . }}-hub
{{- else -}}
{{- .Values.kserve.hf.tokenSecret.name -}}
{{- end -}}
{{- end -}}

{{/* Where discovery is read. */}}
{{- define "model-manager.discoveryNamespace" -}}
{{- .Values.kserve.discovery.namespace | default .Release.Namespace -}}
{{- end -}}

{{/* MiB for V8's old space, of a memory limit: code, sockets and what V8 keeps elsewhere need the rest. */}}
{{- define "model-manager.heapMiB" -}}
{{- $limit := dig "limits" "memory" "" (. | default dict) -}}
{{- $limit = ternary (printf "%.0f" $limit) (toString $limit) (kindIs "float64" $limit) -}}
{{- $bytes := dict "" 1.0 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 -}}
{{- $unit := regexFind "[A-Za-z]*$" $limit -}}
{{- if and (regexMatch "^[0-9]+(\\.[0-9]+)?[A-Za-z]*$" $limit) (hasKey $bytes $unit) -}}
{{- divf (mulf (float64 (trimSuffix $unit $limit)) (index $bytes $unit) 0.6) 1048576.0 | floor | int -}}
{{- end -}}
{{- end -}}
