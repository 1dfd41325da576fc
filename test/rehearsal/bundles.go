package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing/fstest"
)

// bundle is the bundle of a version of an operator.
type bundle struct {
	operator *operator
	number   string
}

// csv returns the ClusterServiceVersion.
func (b *bundle) csv() object {
	o := b.operator
	spec := object{
		"displayName": o.kind(), "version": b.number, "installModes": b.modes(),
		"customresourcedefinitions": object{"owned": b.owned(), "required": b.required()},
		"install":                   object{"strategy": "deployment", "spec": b.strategy()},
	}
	if b.number == newer {
		spec["replaces"] = o.version(installed)
	}
	if o.webhook != "" {
		spec["webhookdefinitions"] = []any{b.definition()}
	}
	if o.api {
		spec["apiservicedefinitions"] = object{"owned": []any{object{
			"group": "served" + o.group(), "version": "v1", "kind": "Served" + o.name, "name": "served" + o.name + "s",
			"deploymentName": o.name, "containerPort": servedPort,
		}}}
	}
	return object{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": object{"name": o.version(b.number)}, "spec": spec,
	}
}

func (b *bundle) modes() []any {
	o := b.operator
	var all []any
	for _, mode := range []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
		supported := mode == "AllNamespaces" || (!o.failed && o.webhook != conversion)
		all = append(all, object{"type": mode, "supported": supported})
	}
	return all
}

func (b *bundle) owned() []any {
	o := b.operator
	var all []any
	for _, version := range o.versions() {
		all = append(all, object{"name": o.resource() + "." + o.group(), "version": version, "kind": o.kind()})
	}
	return all
}

func (b *bundle) required() []any {
	o := b.operator
	if o.requires == "" {
		return nil
	}
	other := operator{name: o.requires}
	return []any{object{"name": other.resource() + "." + other.group(), "version": "v1", "kind": other.kind()}}
}

func (b *bundle) strategy() object {
	o := b.operator
	container := object{"name": "main", "image": idleImage}
	if o.answers() {
		container = object{
			"name": "main", "image": answeringImage, "args": []string{fmt.Sprintf(":%d", servedPort)},
			"readinessProbe": object{"periodSeconds": 1, "timeoutSeconds": 10, "httpGet": object{"scheme": "HTTPS", "path": "/healthz", "port": servedPort}},
		}
	}
	pod := object{"terminationGracePeriodSeconds": 5, "containers": []any{container}}
	strategy := object{}
	if o.account {
		pod["serviceAccountName"] = o.name
		rules := []any{object{"apiGroups": []string{o.group()}, "resources": []string{o.resource()}, "verbs": []string{"get", "list", "watch", "update"}}}
		permissions := []any{object{"serviceAccountName": o.name, "rules": rules}}
		strategy["permissions"], strategy["clusterPermissions"] = permissions, permissions
	}
	labels := object{"app": o.name}
	strategy["deployments"] = []any{object{"name": o.name, "spec": object{
		"replicas": 1, "selector": object{"matchLabels": labels}, "template": object{"metadata": object{"labels": labels}, "spec": pod},
	}}}
	return strategy
}

// definition returns the description of the webhook.
func (b *bundle) definition() object {
	o := b.operator
	path := map[string]string{"ValidatingAdmissionWebhook": "/validate", "MutatingAdmissionWebhook": "/mutate", conversion: "/convert"}[o.webhook]
	d := object{
		"type": o.webhook, "generateName": "call." + o.group(), "deploymentName": o.name, "containerPort": 443, "targetPort": servedPort,
		"webhookPath": path, "admissionReviewVersions": []string{"v1"}, "sideEffects": "None",
	}
	if o.webhook == conversion {
		d["conversionCRDs"] = []string{o.resource() + "." + o.group()}
		return d
	}
	d["failurePolicy"] = "Fail"
	d["rules"] = []any{object{
		"operations": []string{"CREATE"}, "apiGroups": []string{o.group()}, "apiVersions": []string{"v1"}, "resources": []string{o.resource()},
	}}
	return d
}

// crd returns the CustomResourceDefinition.
func (b *bundle) crd() object {
	o := b.operator
	var versions []any
	for i, version := range o.versions() {
		versions = append(versions, object{"name": version, "served": true, "storage": i == 0, "schema": object{"openAPIV3Schema": object{
			"type": "object", "properties": object{"spec": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		}}})
	}
	return object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": o.resource() + "." + o.group()},
		"spec": object{
			"group": o.group(), "scope": "Namespaced", "versions": versions,
			"names": object{"plural": o.resource(), "singular": o.name, "kind": o.kind(), "listKind": o.kind() + "List"},
		},
	}
}

// manifests returns the objects of the bundle.
func (b *bundle) manifests() []object {
	return append([]object{b.csv(), b.crd()}, b.operator.objects...)
}

// files returns the files of a bundle image.
func (b *bundle) files() (fstest.MapFS, error) {
	files := fstest.MapFS{"metadata/annotations.yaml": {Data: []byte(strings.NewReplacer("NAME", b.operator.name).Replace(`annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: NAME
  operators.operatorframework.io.bundle.channels.v1: stable
`))}}
	for i, manifest := range b.manifests() {
		text, err := json.Marshal(manifest)
		if err != nil {
			return nil, fmt.Errorf("encoding an object of %s: %w", b.operator.name, err)
		}
		files[fmt.Sprintf("manifests/%d.json", i)] = &fstest.MapFile{Data: text}
	}
	return files, nil
}

// properties returns the properties. Without an image, they contain its objects.
func (b *bundle) properties() ([]any, error) {
	o := b.operator
	property := func(kind string, value any) object { return object{"type": kind, "value": value} }
	all := []any{property("olm.package", object{"packageName": o.name, "version": b.number})}
	for _, version := range o.versions() {
		all = append(all, property("olm.gvk", object{"group": o.group(), "version": version, "kind": o.kind()}))
	}
	if o.requires != "" {
		other := operator{name: o.requires}
		all = append(all, property("olm.gvk.required", object{"group": other.group(), "version": "v1", "kind": other.kind()}))
	}
	if o.api {
		all = append(all, property("olm.gvk", object{"group": "served" + o.group(), "version": "v1", "kind": "Served" + o.name}))
	}
	if len(o.objects) > 0 {
		return all, nil
	}
	for _, manifest := range b.manifests() {
		text, err := json.Marshal(manifest)
		if err != nil {
			return nil, fmt.Errorf("encoding an object of %s: %w", o.name, err)
		}
		all = append(all, property("olm.bundle.object", object{"data": text}))
	}
	return all, nil
}
