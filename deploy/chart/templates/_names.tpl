{{/* Labels by which the release is found. */}}
{{- define "chandlery.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* An image, of a list of the root and the settings of the image. */}}
{{- define "chandlery.image" -}}
{{- $root := index . 0 }}
{{- $image := index . 1 }}
{{- if $image.digest }}
{{- printf "%s@%s" $image.repository $image.digest }}
{{- else }}
{{- printf "%s:%s" $image.repository ($image.tag | default $root.Chart.AppVersion) }}
{{- end }}
{{- end }}

{{/*
Whether the release brings an object, of a list of the root, its apiVersion, kind, name and, if it has one,
namespace: "true" where it is absent or of this release. What another owner made stays as it is.
*/}}
{{- define "chandlery.brings" -}}
{{- $root := index . 0 }}
{{- $namespace := "" }}
{{- if gt (len .) 4 }}
{{- $namespace = index . 4 }}
{{- end }}
{{- $live := lookup (index . 1) (index . 2) $namespace (index . 3) }}
{{- $annotations := dig "metadata" "annotations" (dict) $live }}
{{- if or (empty $live) (and (eq (get $annotations "meta.helm.sh/release-name") $root.Release.Name) (eq (get $annotations "meta.helm.sh/release-namespace") $root.Release.Namespace)) }}true{{ end }}
{{- end }}

{{/*
Whether the API server serves the kinds of operators.coreos.com. It does not when the chart is rendered for a new
cluster. Looking for an object of these kinds would then fail.
*/}}
{{- define "chandlery.served" -}}
{{- if .Capabilities.APIVersions.Has "operators.coreos.com/v1/OLMConfig" }}true{{ end }}
{{- end }}

{{/* Whether the release creates an object of such a kind, of a list as for chandlery.brings: "true" where none exists. */}}
{{- define "chandlery.creates" -}}
{{- $root := index . 0 }}
{{- if not (include "chandlery.served" $root) }}
{{- if $root.Values.crds.install }}true{{ end }}
{{- else if empty (lookup (index . 1) (index . 2) (index . 4) (index . 3)) }}true
{{- end }}
{{- end }}

{{/* The names of the OperatorGroups in namespace operators. A second group would block the namespace. */}}
{{- define "chandlery.groups" -}}
{{- if include "chandlery.served" . }}
{{- range dig "items" (list) (lookup "operators.coreos.com/v1" "OperatorGroup" "operators" "") }}
{{ .metadata.name }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Annotations of an object of such a kind. With a cluster, the object is a hook: Helm needs the kind of every other object
before it creates the first one. "never" is no delete policy of Helm, so no policy applies; without the annotation, Helm
would delete an existing object. Without a cluster, the object is no hook: other programs run hooks in other ways.
*/}}
{{- define "chandlery.defaultAnnotations" -}}
helm.sh/resource-policy: keep
{{- if lookup "v1" "Namespace" "" "kube-system" }}
helm.sh/hook: post-install,post-upgrade
helm.sh/hook-delete-policy: never
meta.helm.sh/release-name: {{ .Release.Name }}
meta.helm.sh/release-namespace: {{ .Release.Namespace }}
{{- end }}
{{- end }}

{{/* What the chart would bring and another owner has made, one a line. */}}
{{- define "chandlery.foreign" -}}
{{- $root := . }}
{{- if .Values.crds.install }}
{{- range $path, $_ := .Files.Glob "files/crds/*.yaml" }}
{{- $name := ($root.Files.Get $path | fromYaml).metadata.name }}
{{- if not (include "chandlery.brings" (list $root "apiextensions.k8s.io/v1" "CustomResourceDefinition" $name)) }}
  CustomResourceDefinition {{ $name }}
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.globalCatalogNamespace.create }}
{{- if not (include "chandlery.brings" (list . "v1" "Namespace" .Values.globalCatalogNamespace.name)) }}
  Namespace {{ .Values.globalCatalogNamespace.name }}
{{- end }}
{{- end }}
{{- if and .Values.defaults.operatorsNamespace (not (include "chandlery.brings" (list . "v1" "Namespace" "operators"))) }}
  Namespace operators
{{- end }}
{{- if include "chandlery.served" . }}
{{- $groups := include "chandlery.groups" . | trim }}
{{- $own := and (eq $groups "global-operators") (include "chandlery.brings" (list . "operators.coreos.com/v1" "OperatorGroup" "global-operators" "operators")) }}
{{- if and .Values.defaults.operatorsNamespace $groups (not $own) }}
  the OperatorGroup in namespace operators
{{- end }}
{{- if and .Values.defaults.olmConfig (not (include "chandlery.brings" (list . "operators.coreos.com/v1" "OLMConfig" "cluster"))) }}
  OLMConfig cluster
{{- end }}
{{- if and .Values.defaults.operatorHubCatalog (not (include "chandlery.brings" (list . "operators.coreos.com/v1alpha1" "CatalogSource" "operatorhubio-catalog" .Values.globalCatalogNamespace.name))) }}
  CatalogSource operatorhubio-catalog
{{- end }}
{{- end }}
{{- if .Values.rbac.create }}
{{- range $name := list "aggregate-olm-edit" "aggregate-olm-view" }}
{{- if not (include "chandlery.brings" (list $root "rbac.authorization.k8s.io/v1" "ClusterRole" $name)) }}
  ClusterRole {{ $name }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
