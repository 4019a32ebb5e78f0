{{/* `--flag=value` where there is a value. Takes (list "flag" value). */}}
{{- define "model-manager.flag" -}}
{{- $value := index . 1 | toString -}}
{{- if $value }}
- {{ printf "--%s=%s" (first .) $value | quote }}
{{- end }}
{{- end -}}

{{/* `--flag` where it is switched on. Takes (list "flag" boolean). */}}
{{- define "model-manager.switch" -}}
{{- if index . 1 }}
- --{{ first . }}
{{- end }}
{{- end -}}

{{/* What the gateway is started with. */}}
{{- define "model-manager.arguments" -}}
{{- $backends := include "model-manager.backends" . | fromJsonArray -}}
- {{ ternary "demo" "serve" .Values.demo.enabled }}
- --listen=:8080
{{- with .Values.observability.metrics }}
{{- if .enabled }}
- {{ printf "--metrics-listen=:%v" .port | quote }}
{{- end }}
{{- end }}
{{- include "model-manager.flag" (list "backends" (join "," $backends)) }}
{{- if has "ollama" $backends }}
{{- include "model-manager.flag" (list "ollama-endpoint" .Values.ollama.endpoint) }}
{{- include "model-manager.flag" (list "ollama-agent-host" .Values.ollama.agentHost) }}
{{- end }}
{{- if and (ne (toString .Values.ollama.memoryBudgetGiB) "0") (not .Values.demo.enabled) }}
{{- include "model-manager.flag" (list "ollama-memory-budget-gib" .Values.ollama.memoryBudgetGiB) }}
{{- end }}
{{- if has "lemonade" $backends }}
{{- include "model-manager.flag" (list "lemonade-endpoint" .Values.lemonade.endpoint) }}
{{- include "model-manager.flag" (list "lemonade-agent-host" .Values.lemonade.agentHost) }}
{{- end }}
{{- if has "lmstudio" $backends }}
{{- include "model-manager.flag" (list "lmstudio-endpoint" .Values.lmstudio.endpoint) }}
{{- include "model-manager.flag" (list "lmstudio-agent-host" .Values.lmstudio.agentHost) }}
{{- end }}
{{- if include "model-manager.usesKubernetes" . }}
{{- include "model-manager.kubernetesArguments" . }}
{{- include "model-manager.kserveArguments" . }}
{{- end }}
{{- if .Values.oauth.enabled }}
{{- include "model-manager.oauthArguments" . }}
{{- end }}
{{- if not .Values.graphql.graphiql }}
- --graphiql=false
{{- end }}
{{- include "model-manager.flag" (list "introspection" .Values.graphql.introspection) }}
{{- include "model-manager.flag" (list "allowed-origins" (join "," .Values.graphql.allowedOrigins)) }}
{{- if .Values.mcp.enabled }}
{{- include "model-manager.flag" (list "mcp-path" .Values.mcp.path) }}
{{- else }}
- --mcp-enabled=false
{{- end }}
{{- include "model-manager.switch" (list "verbose" .Values.logging.verbose) }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "model-manager.kubernetesArguments" }}
- --in-cluster
{{- if eq .Values.jobStore "kubernetes" }}
- --job-store=kubernetes
{{- end }}
{{- if .Values.kagent.disableWiring }}
- --disable-wiring
{{- else }}
{{- include "model-manager.flag" (list "kagent-namespace" .Values.kagent.namespace) }}
{{- include "model-manager.flag" (list "kagent-api-version" .Values.kagent.apiVersion) }}
{{- include "model-manager.flag" (list "modelconfig-prefix" .Values.kagent.modelConfigPrefix) }}
{{- if not .Values.kagent.autoWire }}
- --auto-wire=false
{{- end }}
{{- end }}
{{- end -}}

{{/* Also where `backends` has no kserve: one that is registered later goes by them. */}}
{{- define "model-manager.kserveArguments" -}}
{{- with .Values.kserve }}
{{- include "model-manager.flag" (list "kserve-namespace" .namespace) }}
{{- include "model-manager.flag" (list "kserve-gpu-resource" .gpuResource) }}
{{- include "model-manager.flag" (list "kserve-discovery-namespace" (include "model-manager.discoveryNamespace" $)) }}
{{- include "model-manager.flag" (list "kserve-discovery-configmap" .discovery.configMap) }}
{{- include "model-manager.flag" (list "kserve-cache-claim" .cache.claim) }}
{{- include "model-manager.flag" (list "kserve-cache-mount-path" .cache.mountPath) }}
{{- include "model-manager.flag" (list "kserve-cache-nodes" (join "," .cache.nodes)) }}
{{- include "model-manager.flag" (list "kserve-cache-index-configmap" .cache.indexConfigMap) }}
{{- include "model-manager.flag" (list "kserve-preset-namespace" .presets.namespace) }}
{{- include "model-manager.flag" (list "kserve-preset-selector" .presets.selector) }}
{{- include "model-manager.flag" (list "kserve-hf-endpoint" .hf.endpoint) }}
{{- include "model-manager.flag" (list "kserve-hf-timeout" .hf.timeout) }}
{{- with include "model-manager.hubSecret" $ }}
{{- include "model-manager.flag" (list "kserve-hf-token-secret" .) }}
{{- include "model-manager.flag" (list "kserve-hf-token-secret-key" $.Values.kserve.hf.tokenSecret.key) }}
{{- end }}
{{- include "model-manager.flag" (list "kserve-download-image" .download.image) }}
{{- include "model-manager.flag" (list "kserve-download-ignore-patterns" .download.ignorePatterns) }}
{{- include "model-manager.flag" (list "kserve-download-stall-timeout" .download.stallTimeout) }}
{{- include "model-manager.flag" (list "kserve-job-ttl" .download.jobTTL) }}
{{- include "model-manager.flag" (list "kserve-init-image" .inventory.image) }}
{{- include "model-manager.flag" (list "kserve-inventory-mode" .inventory.mode) }}
{{- include "model-manager.flag" (list "kserve-inventory-ttl" .inventory.ttl) }}
{{- include "model-manager.flag" (list "kserve-inventory-timeout" .inventory.timeout) }}
{{- if eq .inventory.mode "daemonset" }}
{{- include "model-manager.flag" (list "kserve-inventory-agent-port" .inventory.agent.port) }}
{{- end }}
{{- include "model-manager.flag" (list "kserve-budget-source" .budget.source) }}
{{- include "model-manager.flag" (list "kserve-default-overhead-gib" .budget.defaultOverheadGiB) }}
{{- include "model-manager.flag" (list "kserve-ready-timeout" .readyTimeout) }}
{{- include "model-manager.flag" (list "kserve-scale-up-timeout" .scaleUpTimeout) }}
{{- end }}
{{- end -}}

{{- define "model-manager.oauthArguments" -}}
{{- with .Values.oauth }}
- --enable-oauth
{{- include "model-manager.flag" (list "oauth-base-url" (include "model-manager.baseURL" $)) }}
{{- include "model-manager.flag" (list "oauth-provider" .provider) }}
{{- if eq .provider "dex" }}
{{- include "model-manager.flag" (list "dex-issuer-url" (include "model-manager.issuerURL" $)) }}
{{- include "model-manager.flag" (list "dex-client-id" (include "model-manager.clientID" $)) }}
{{- if include "model-manager.certificates" $ }}
- --dex-ca-file=/etc/model-manager/ca/ca.crt
{{- end }}
{{- else }}
{{- include "model-manager.flag" (list "google-client-id" .google.clientID) }}
{{- end }}
{{- include "model-manager.flag" (list "oauth-trusted-audiences" (include "model-manager.audiences" $)) }}
{{- include "model-manager.switch" (list "allow-private-oauth-urls" .dex.allowPrivateURLs) }}
{{- include "model-manager.switch" (list "sso-allow-private-ips" .sso.allowPrivateIPs) }}
{{- include "model-manager.switch" (list "downstream-oauth" .downstream.enabled) }}
{{- end }}
{{- end -}}
