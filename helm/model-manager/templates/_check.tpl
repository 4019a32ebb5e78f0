{{/* Fails with everything that stands in the way of these values, a sentence each. */}}
{{- define "model-manager.check" -}}
{{- $problems := include "model-manager.missing" . | fromJsonArray -}}
{{- if not $problems -}}
{{- $problems = concat
  (include "model-manager.backendProblems" . | fromJsonArray)
  (include "model-manager.demoProblems" . | fromJsonArray)
  (include "model-manager.replicaProblems" . | fromJsonArray)
  (include "model-manager.kubernetesProblems" . | fromJsonArray)
  (ternary (include "model-manager.oauthProblems" . | fromJsonArray) list .Values.oauth.enabled)
  (include "model-manager.platformProblems" . | fromJsonArray)
  (include "model-manager.extraArgsProblems" . | fromJsonArray)
-}}
{{- end -}}
{{- if $problems -}}
{{- fail (printf "\n\nThese values cannot be installed:\n- %s\n" (join "\n- " $problems)) -}}
{{- end -}}
{{- end -}}

{{/* Keys that are `null`, or that an upgrade with `--reuse-values` from an older chart does not have; others have defaults. */}}
{{- define "model-manager.missing" -}}
{{- $problems := list -}}
{{- range $path := .Files.Get "files/keys.yaml" | fromYamlArray -}}
{{- $value := $.Values -}}
{{- $isAsked := true -}}
{{- range $key := splitList "." $path -}}
{{- $isAsked = kindIs "map" $value -}}
{{- if $isAsked -}}
{{- $value = index $value $key -}}
{{- end -}}
{{- end -}}
{{- if and $isAsked (kindIs "invalid" $value) -}}
{{- $problems = append $problems (printf "%s has no value: leave the key out for its default; with --reuse-values, give --reset-then-reuse-values instead." $path) -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}

{{- define "model-manager.backendProblems" -}}
{{- $problems := list -}}
{{- $known := (include "model-manager.facts" . | fromJson).backends -}}
{{- if and .Values.backend .Values.backends -}}
{{- $problems = append $problems "backend and backends are both given: put all of them into backends and leave backend empty." -}}
{{- end -}}
{{- range concat (list .Values.backend | compact) (.Values.backends | default list) -}}
{{- if not (has . $known) -}}
{{- $problems = append $problems (printf "there is no backend %q: known are %s." (toString .) (join ", " $known)) -}}
{{- end -}}
{{- end -}}
{{- if ne (len (.Values.backends | default list | uniq)) (len (.Values.backends | default list)) -}}
{{- $problems = append $problems (printf "backends is %s: name each backend once." (join ", " .Values.backends)) -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}

{{- define "model-manager.demoProblems" -}}
{{- $problems := list -}}
{{- if .Values.demo.enabled -}}
{{- if or .Values.backend .Values.backends -}}
{{- $problems = append $problems "demo.enabled is true, but backend or backends is given: the demo has its own; leave both empty, or switch demo.enabled off." -}}
{{- end -}}
{{- if .Values.oauth.enabled -}}
{{- $problems = append $problems "demo.enabled is true, but oauth.enabled is, too: whoever pulls and loads models in the demo is made up and has no token; switch one of them off." -}}
{{- end -}}
{{- if eq .Values.jobStore "kubernetes" -}}
{{- $problems = append $problems "demo.enabled is true, but jobStore is kubernetes: the cluster of the demo ends with its pod; set jobStore to memory." -}}
{{- end -}}
{{- if eq .Values.kserve.inventory.mode "daemonset" -}}
{{- $problems = append $problems "demo.enabled is true, but kserve.inventory.mode is daemonset: the demo has agents of its own; set it to pod." -}}
{{- end -}}
{{- if include "model-manager.hasReplicas" . -}}
{{- $problems = append $problems (printf "replicaCount is %d, but demo.enabled is true: each pod would have a world of its own; set replicaCount to 1." (int .Values.replicaCount)) -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}

{{- define "model-manager.replicaProblems" -}}
{{- $problems := list -}}
{{- $store := .Values.jobStore -}}
{{- $downstream := .Values.oauth.downstream.enabled -}}
{{- if and (eq $store "kubernetes") (not .Values.kubernetes.enabled) -}}
{{- $problems = append $problems "jobStore is kubernetes, but kubernetes.enabled is false: there is no cluster to keep jobs in; set jobStore to memory, or switch kubernetes.enabled on." -}}
{{- end -}}
{{- if and (eq $store "kubernetes") $downstream -}}
{{- $problems = append $problems "jobStore is kubernetes, but oauth.downstream.enabled is true: jobs outlive the tokens of who asked; set jobStore to memory." -}}
{{- end -}}
{{- if and (include "model-manager.hasReplicas" .) (not .Values.demo.enabled) -}}
{{- if or $downstream (not .Values.kubernetes.enabled) -}}
{{- $problems = append $problems (printf "replicaCount is %d, but jobs can only be shared with kubernetes.enabled, and without oauth.downstream.enabled: set replicaCount to 1." (int .Values.replicaCount)) -}}
{{- else if eq $store "memory" -}}
{{- $problems = append $problems (printf "replicaCount is %d, but jobStore is memory: each pod would know its own jobs only; set replicaCount to 1, or jobStore to kubernetes." (int .Values.replicaCount)) -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}

{{- define "model-manager.kubernetesProblems" -}}
{{- $problems := list -}}
{{- if not .Values.kubernetes.enabled -}}
{{- if include "model-manager.serves" (list . "kserve") -}}
{{- $problems = append $problems "kubernetes.enabled is false, but kserve is to be served: it is in the cluster; switch kubernetes.enabled on." -}}
{{- end -}}
{{- if .Values.oauth.downstream.enabled -}}
{{- $problems = append $problems "kubernetes.enabled is false, but oauth.downstream.enabled is true: there is nothing to do as the caller; switch one of them over." -}}
{{- end -}}
{{- if eq .Values.kserve.inventory.mode "daemonset" -}}
{{- $problems = append $problems "kubernetes.enabled is false, but kserve.inventory.mode is daemonset: nobody would ask the agents; set it to pod." -}}
{{- end -}}
{{- end -}}
{{- if and (eq .Values.kserve.inventory.mode "daemonset") (not .Values.kserve.cache.claim) -}}
{{- $problems = append $problems "kserve.inventory.mode is daemonset, but kserve.cache.claim is empty: name the volume claim that the agents are to count." -}}
{{- end -}}
{{- if and .Values.kserve.hf.token .Values.kserve.hf.tokenSecret.name -}}
{{- $problems = append $problems "kserve.hf.token and kserve.hf.tokenSecret.name are both given: drop the one that does not count." -}}
{{- end -}}
{{- if and .Values.kubernetes.enabled .Values.rbac.create (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) -}}
{{- $problems = append $problems "serviceAccount.create is false and serviceAccount.name is empty: rights would go to the default account of the namespace; name an account, or set rbac.create to false." -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}

{{- define "model-manager.oauthProblems" -}}
{{- $problems := list -}}
{{- $platform := include "model-manager.platformIdentity" . | fromJson -}}
{{- $baseURL := include "model-manager.baseURL" . -}}
{{- if not $baseURL -}}
{{- $problems = append $problems "oauth.enabled needs the public URL of the gateway: set oauth.baseURL, or global.domain." -}}
{{- else if not (regexMatch "^(https://[^/]+|http://(localhost|127\\.0\\.0\\.1)(:[0-9]+)?(/|$))" $baseURL) -}}
{{- $problems = append $problems (printf "oauth.baseURL %q is no https URL: tokens would go unencrypted." $baseURL) -}}
{{- end -}}
{{- if eq .Values.oauth.provider "dex" -}}
{{- if not (include "model-manager.issuerURL" .) -}}
{{- $problems = append $problems "oauth.enabled needs the issuer: set oauth.dex.issuerURL, or global.identity.issuerUrl." -}}
{{- end -}}
{{- if not (include "model-manager.clientID" .) -}}
{{- $problems = append $problems "oauth.enabled needs a client at the issuer: set oauth.dex.clientID, or global.identity.clientId." -}}
{{- end -}}
{{- if not (or (kindIs "string" $platform.ca) (kindIs "invalid" $platform.ca)) -}}
{{- $problems = append $problems "global.identity.ca is neither certificates in PEM nor the name of a Secret: name a Secret in oauth.dex.caSecret.name." -}}
{{- end -}}
{{- else if not .Values.oauth.google.clientID -}}
{{- $problems = append $problems "oauth.provider is google, but oauth.google.clientID is empty: set it." -}}
{{- end -}}
{{- if and (include "model-manager.inlineSecret" .) .Values.oauth.existingSecret -}}
{{- $problems = append $problems "oauth.existingSecret is given, and a client secret beside it: drop the one that does not count." -}}
{{- end -}}
{{- if .Values.oauth.allowPublicClientRegistration -}}
{{- $problems = append $problems "oauth.allowPublicClientRegistration is true, but no client registers here: the gateway issues no tokens; set it to false." -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}

{{- define "model-manager.platformProblems" -}}
{{- $problems := list -}}
{{- $metrics := .Values.observability.metrics -}}
{{- $fullname := include "model-manager.fullname" . -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $fullname) -}}
{{- $problems = append $problems (printf "%q cannot be the name of a Service, which begins with a lower-case letter and has lower-case letters, digits and dashes: set fullnameOverride." $fullname) -}}
{{- end -}}
{{- if and .Values.oauth.downstream.enabled (not .Values.oauth.enabled) -}}
{{- $problems = append $problems "oauth.downstream.enabled needs oauth.enabled: without a token there is no caller to work as." -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- $problems = append $problems "httpRoute.enabled needs httpRoute.parentRefs: name the Gateway that the route belongs to." -}}
{{- end -}}
{{- if has (index (splitList "/" .Values.mcp.path) 1) (include "model-manager.facts" . | fromJson).takenPaths -}}
{{- $problems = append $problems (printf "mcp.path is %s, where the gateway has something else: choose a path such as /mcp." .Values.mcp.path) -}}
{{- end -}}
{{- if and .Values.muster.mcpServer.enabled (not .Values.mcp.enabled) -}}
{{- $problems = append $problems "muster.mcpServer.enabled needs mcp.enabled: muster would find no tools." -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (not $metrics.enabled) -}}
{{- $problems = append $problems "serviceMonitor.enabled needs observability.metrics.enabled: there would be nothing to read." -}}
{{- end -}}
{{- if and .Values.prometheusRule.enabled (not $metrics.enabled) -}}
{{- $problems = append $problems "prometheusRule.enabled needs observability.metrics.enabled: no alert would ever come." -}}
{{- end -}}
{{- if eq (int $metrics.port) 8080 -}}
{{- $problems = append $problems "observability.metrics.port is 8080, where the gateway answers: give the metrics a port of their own, such as 9464." -}}
{{- end -}}
{{- if and $metrics.enabled (eq (int $metrics.port) (int .Values.service.port)) -}}
{{- $problems = append $problems (printf "observability.metrics.port and service.port are both %d: give the metrics a port of their own, such as 9464." (int $metrics.port)) -}}
{{- end -}}
{{- if .Values.networkPolicy.enabled -}}
{{- if not .Values.networkPolicy.ingressNamespaces -}}
{{- $problems = append $problems "networkPolicy.enabled needs networkPolicy.ingressNamespaces: nobody could reach the gateway; name the namespaces of who may." -}}
{{- end -}}
{{- if and $metrics.enabled (not .Values.networkPolicy.metricsNamespaces) -}}
{{- $problems = append $problems "networkPolicy.enabled with observability.metrics.enabled needs networkPolicy.metricsNamespaces: nobody could read the metrics; name the namespace of Prometheus." -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}

{{/* Settings by which the chart makes more than an argument: rights, ports, mounts. */}}
{{- define "model-manager.extraArgsProblems" -}}
{{- $problems := list -}}
{{- $keys := dict "backend" "backend" "backends" "backends" "listen" "service.port" "metrics-listen" "observability.metrics.enabled"
  "job-store" "jobStore" "enable-oauth" "oauth.enabled" "downstream-oauth" "oauth.downstream.enabled"
  "kagent-namespace" "kagent.namespace" "kserve-namespace" "kserve.namespace" "kserve-inventory-mode" "kserve.inventory.mode" -}}
{{- range .Values.extraArgs -}}
{{- $flag := splitList "=" . | first | trimPrefix "--" -}}
{{- with get $keys $flag -}}
{{- $problems = append $problems (printf "extraArgs has --%s, of which the rest of the chart would not know: set %s." $flag .) -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}
