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
Whether the API server serves the kinds of operators.coreos.com. Helm needs them before it creates any object of
a release, so that a release that brings the kinds cannot bring objects of them before its first upgrade.
*/}}
{{- define "chandlery.served" -}}
{{- if .Capabilities.APIVersions.Has "operators.coreos.com/v1/OLMConfig" }}true{{ end }}
{{- end }}

{{/* Whether the release brings an object of such a kind; the list is that of chandlery.brings. */}}
{{- define "chandlery.bringsCustom" -}}
{{- if include "chandlery.served" (index . 0) }}{{ include "chandlery.brings" . }}{{ end }}
{{- end }}

{{/* Whether the release brings OperatorGroup global-operators. A second group would block the namespace. */}}
{{- define "chandlery.bringsGroup" -}}
{{- $group := list . "operators.coreos.com/v1" "OperatorGroup" "global-operators" "operators" }}
{{- if and .Values.defaults.operatorsNamespace (include "chandlery.bringsCustom" $group) }}
{{- $others := list }}
{{- range dig "items" (list) (lookup "operators.coreos.com/v1" "OperatorGroup" "operators" "") }}
{{- if ne .metadata.name "global-operators" }}
{{- $others = append $others .metadata.name }}
{{- end }}
{{- end }}
{{- if empty $others }}true{{ end }}
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
{{- if and .Values.defaults.operatorsNamespace (not (include "chandlery.bringsGroup" .)) }}
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
