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
Whether the release brings an object of the whole cluster, of a list of the root, its apiVersion,
kind and name: "true" where it is absent or of this release. What another owner made stays as it is.
*/}}
{{- define "chandlery.brings" -}}
{{- $root := index . 0 }}
{{- $live := lookup (index . 1) (index . 2) "" (index . 3) }}
{{- $annotations := dig "metadata" "annotations" (dict) $live }}
{{- if or (empty $live) (and (eq (get $annotations "meta.helm.sh/release-name") $root.Release.Name) (eq (get $annotations "meta.helm.sh/release-namespace") $root.Release.Namespace)) }}true{{ end }}
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
{{- if .Values.rbac.create }}
{{- range $name := list "aggregate-olm-edit" "aggregate-olm-view" }}
{{- if not (include "chandlery.brings" (list $root "rbac.authorization.k8s.io/v1" "ClusterRole" $name)) }}
  ClusterRole {{ $name }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
