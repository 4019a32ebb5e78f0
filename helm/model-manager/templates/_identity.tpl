{{/* What the platform says of its identity provider, as JSON. */}}
{{- define "model-manager.platformIdentity" -}}
{{- dig "identity" dict (.Values.global | default dict) | toJson -}}
{{- end -}}

{{- define "model-manager.domain" -}}
{{- dig "domain" "" (.Values.global | default dict) -}}
{{- end -}}

{{/* The public host name that follows from the domain of the platform; empty without one. */}}
{{- define "model-manager.publicHost" -}}
{{- with include "model-manager.domain" . }}{{ printf "%s.%s" (include "model-manager.fullname" $) . }}{{ end -}}
{{- end -}}

{{- define "model-manager.baseURL" -}}
{{- if .Values.oauth.baseURL -}}
{{- .Values.oauth.baseURL -}}
{{- else -}}
{{- with include "model-manager.publicHost" . }}https://{{ . }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "model-manager.issuerURL" -}}
{{- .Values.oauth.dex.issuerURL | default (get (include "model-manager.platformIdentity" . | fromJson) "issuerUrl") -}}
{{- end -}}

{{- define "model-manager.clientID" -}}
{{- .Values.oauth.dex.clientID | default (get (include "model-manager.platformIdentity" . | fromJson) "clientId") -}}
{{- end -}}

{{/* Audiences that are trusted, in their order and once each, separated by commas. */}}
{{- define "model-manager.audiences" -}}
{{- $platform := get (include "model-manager.platformIdentity" . | fromJson) "clientId" | list | compact -}}
{{- $own := .Values.oauth.trustedAudiences | default $platform -}}
{{- concat $own (.Values.muster.mcpServer.auth.requiredAudiences | default list) | uniq | join "," -}}
{{- end -}}

{{/* The client secret that stands in the values. */}}
{{- define "model-manager.inlineSecret" -}}
{{- ternary .Values.oauth.dex.clientSecret .Values.oauth.google.clientSecret (eq .Values.oauth.provider "dex") -}}
{{- end -}}

{{/* The Secret with the client secret; empty for none. */}}
{{- define "model-manager.oauthSecret" -}}
{{- if include "model-manager.inlineSecret" . -}}
{{- include "model-manager.suffixed" (list . "oauth") -}}
{{- else -}}
{{- .Values.oauth.existingSecret | default (get (include "model-manager.platformIdentity" . | fromJson) "existingSecret") -}}
{{- end -}}
{{- end -}}

{{/* Certificates of the platform, in PEM; empty where they are elsewhere. */}}
{{- define "model-manager.platformCertificates" -}}
{{- $ca := get (include "model-manager.platformIdentity" . | fromJson) "ca" | toString -}}
{{- if and (not .Values.oauth.dex.caSecret.name) (contains "-----BEGIN " $ca) }}{{ $ca }}{{ end -}}
{{- end -}}

{{/* The volume of the certificates that Dex is trusted by, as JSON; empty for none. */}}
{{- define "model-manager.certificates" -}}
{{- $ca := get (include "model-manager.platformIdentity" . | fromJson) "ca" -}}
{{- if ne .Values.oauth.provider "dex" -}}
{{- else if .Values.oauth.dex.caSecret.name -}}
{{- with .Values.oauth.dex.caSecret }}{{ dict "secret" (dict "secretName" .name "items" (list (dict "key" .key "path" "ca.crt"))) | toJson }}{{ end -}}
{{- else if include "model-manager.platformCertificates" . -}}
{{- dict "configMap" (dict "name" (include "model-manager.suffixed" (list . "ca"))) | toJson -}}
{{- else if $ca -}}
{{- dict "secret" (dict "secretName" $ca "items" (list (dict "key" "ca.crt" "path" "ca.crt"))) | toJson -}}
{{- end -}}
{{- end -}}
