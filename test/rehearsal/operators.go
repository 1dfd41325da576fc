package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing/fstest"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// domain ends the API group of each operator: NAME.rehearsal.example.
	domain = "rehearsal.example"
	// idleImage only waits; answeringImage is the program of this repository.
	idleImage      = "rehearsal/idle:1"
	answeringImage = "rehearsal/operator:1"
	// servedPort is the port of the answering program.
	servedPort = 8443
	// allNamespaces is the namespace in the manifests of OLM whose operators work in all namespaces.
	allNamespaces = "operators"
	conversion    = "ConversionWebhook"
)

// object is a manifest.
type object = map[string]any

// operator describes one operator of the rehearsal. Its package and its Subscription have its name.
type operator struct {
	name string
	// shape is what makes it differ from the others, for the reader.
	shape string
	// namespace has the Subscription; targets are the namespaces of its OperatorGroup. Without targets, it works in all
	// namespaces.
	namespace string
	targets   []string
	// webhook is the type of its webhook; empty for none. api is true if it serves an aggregated API.
	webhook string
	api     bool
	// account is true if its Deployment names a ServiceAccount.
	account bool
	// manual is true if updates wait for approval; there is one.
	manual bool
	// mode is its only install mode; empty for all that its webhook permits.
	mode string
	// image is true if its bundle is an image. objects are further objects of the bundle.
	image   bool
	objects []object
	// requires is the operator whose kind it requires. dependency is true if no user subscribes to it.
	requires   string
	dependency bool
	config     *operatorsv1alpha1.SubscriptionConfig
	// failed is true if its version cannot be installed.
	failed bool
}

// operators returns the sixteen operators.
func operators() []operator {
	return []operator{
		ownNamespace(operator{name: "plain", shape: "own namespace", account: true}),
		{name: "single", shape: "one other namespace", namespace: "single", targets: []string{"single-target"}, account: true},
		{name: "multiple", shape: "two namespaces", namespace: "multiple", targets: []string{"multiple", "multiple-target"}, account: true},
		{name: "global", shape: "all namespaces, copied", namespace: allNamespaces, account: true},
		{name: "neighbour", shape: "all namespaces, same InstallPlan", namespace: allNamespaces, account: true},
		ownNamespace(operator{name: "validator", shape: "validating webhook", webhook: "ValidatingAdmissionWebhook", account: true}),
		ownNamespace(operator{name: "mutator", shape: "mutating webhook, no account", webhook: "MutatingAdmissionWebhook"}),
		{name: "converter", shape: "conversion webhook", namespace: "converter", webhook: conversion, account: true},
		ownNamespace(operator{name: "server", shape: "APIService", api: true, account: true}),
		ownNamespace(operator{name: "gateway", shape: "APIService and webhook, no account", webhook: "ValidatingAdmissionWebhook", api: true}),
		ownNamespace(operator{name: "manual", shape: "update waits for approval", manual: true, account: true}),
		ownNamespace(operator{name: "failing", shape: "failed version", mode: "AllNamespaces", failed: true, account: true}),
		ownNamespace(operator{name: "dependent", shape: "requires another operator", requires: "dependency", account: true}),
		{name: "dependency", shape: "installed as a dependency", namespace: "dependent", targets: []string{"dependent"}, dependency: true, account: true},
		ownNamespace(operator{name: "imaged", shape: "bundle image with further objects", image: true, objects: furtherObjects("imaged"), account: true}),
		ownNamespace(operator{name: "configured", shape: "settings in the Subscription", config: settings(), account: true}),
	}
}

// late returns the operator whose InstallPlan is under way at a switch: its PodDisruptionBudget exceeds a quota.
func late(round int, direction string) operator {
	name := fmt.Sprintf("late%d%s", round, direction)
	return ownNamespace(operator{name: name, shape: "InstallPlan under way", image: true, objects: furtherObjects(name), account: true})
}

// ownNamespace returns an operator in a namespace of its own, in which it works.
func ownNamespace(o operator) operator {
	o.namespace, o.targets = o.name, []string{o.name}
	return o
}

func settings() *operatorsv1alpha1.SubscriptionConfig {
	return &operatorsv1alpha1.SubscriptionConfig{
		Env:         []corev1.EnvVar{{Name: "COLOUR", Value: "red"}},
		Annotations: map[string]string{"rehearsal.example/team": "blue"},
		Resources:   &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m")}},
		Tolerations: []corev1.Toleration{{Key: "rehearsal.example/spot", Operator: corev1.TolerationOpExists}},
	}
}

func furtherObjects(name string) []object {
	return []object{
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name + "-settings"}, "data": object{"colour": "red"}},
		{
			"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": object{"name": name + "-budget"},
			"spec": object{"maxUnavailable": 1, "selector": object{"matchLabels": object{"app": name}}},
		},
	}
}

func (o *operator) group() string    { return o.name + "." + domain }
func (o *operator) kind() string     { return strings.ToUpper(o.name[:1]) + o.name[1:] }
func (o *operator) resource() string { return o.name + "s" }

// version returns the name of a version.
func (o *operator) version(number string) string { return o.name + ".v" + number }

// installed is the number of the version that is installed.
const installed, newer = "1.0.0", "1.1.0"

// answers reports whether the API server calls the operator.
func (o *operator) answers() bool { return o.webhook != "" || o.api }

// csv returns the ClusterServiceVersion.
func (o *operator) csv(number, replaces string) object {
	spec := object{
		"displayName": o.kind(), "version": number, "installModes": o.modes(),
		"customresourcedefinitions": object{"owned": o.owned(), "required": o.required()},
		"install":                   object{"strategy": "deployment", "spec": o.strategy()},
	}
	if replaces != "" {
		spec["replaces"] = replaces
	}
	if o.webhook != "" {
		spec["webhookdefinitions"] = []any{o.definition()}
	}
	if o.api {
		spec["apiservicedefinitions"] = object{"owned": []any{object{
			"group": "served" + o.group(), "version": "v1", "kind": "Served" + o.name, "name": "served" + o.name + "s",
			"deploymentName": o.name, "containerPort": servedPort,
		}}}
	}
	return object{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": object{"name": o.version(number)}, "spec": spec,
	}
}

func (o *operator) modes() []any {
	var all []any
	for _, mode := range []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
		supported := o.mode == "" || o.mode == mode
		if o.webhook == conversion {
			supported = mode == "AllNamespaces"
		}
		all = append(all, object{"type": mode, "supported": supported})
	}
	return all
}

func (o *operator) owned() []any {
	var all []any
	for _, version := range o.versions() {
		all = append(all, object{"name": o.resource() + "." + o.group(), "version": version, "kind": o.kind()})
	}
	return all
}

func (o *operator) required() []any {
	if o.requires == "" {
		return nil
	}
	other := operator{name: o.requires}
	return []any{object{"name": other.resource() + "." + other.group(), "version": "v1", "kind": other.kind()}}
}

// versions returns the versions of the kind.
func (o *operator) versions() []string {
	if o.webhook == conversion {
		return []string{"v1", "v2"}
	}
	return []string{"v1"}
}

func (o *operator) strategy() object {
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
func (o *operator) definition() object {
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
func (o *operator) crd() object {
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

// numbers returns the numbers of the versions in the catalog.
func (o *operator) numbers() []string {
	if o.manual {
		return []string{installed, newer}
	}
	return []string{installed}
}

// manifests returns the objects of the bundle of a version.
func (o *operator) manifests(number string) []object {
	replaces := ""
	if number == newer {
		replaces = o.version(installed)
	}
	return append([]object{o.csv(number, replaces), o.crd()}, o.objects...)
}

// bundle returns the files of a bundle image.
func (o *operator) bundle(number string) (fstest.MapFS, error) {
	files := fstest.MapFS{"metadata/annotations.yaml": {Data: []byte(strings.NewReplacer("NAME", o.name).Replace(`annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: NAME
  operators.operatorframework.io.bundle.channels.v1: stable
`))}}
	for i, manifest := range o.manifests(number) {
		text, err := json.Marshal(manifest)
		if err != nil {
			return nil, fmt.Errorf("encoding an object of %s: %w", o.name, err)
		}
		files[fmt.Sprintf("manifests/%d.json", i)] = &fstest.MapFile{Data: text}
	}
	return files, nil
}

// catalog returns the file-based catalog of operators. images is the repository of the bundle images.
func catalog(all []operator, images string) ([]byte, error) {
	var text []byte
	for i := range all {
		blobs, err := all[i].blobs(images)
		if err != nil {
			return nil, err
		}
		for _, blob := range blobs {
			line, err := json.Marshal(blob)
			if err != nil {
				return nil, fmt.Errorf("encoding the catalog: %w", err)
			}
			text = append(append(text, line...), '\n')
		}
	}
	return text, nil
}

// blobs returns the package, its bundles and its channel.
func (o *operator) blobs(images string) ([]object, error) {
	blobs := []object{{"schema": "olm.package", "name": o.name, "defaultChannel": "stable"}}
	var entries []any
	for i, number := range o.numbers() {
		entry := object{"name": o.version(number)}
		if i > 0 {
			entry["replaces"] = o.version(o.numbers()[i-1])
		}
		entries = append(entries, entry)
		properties, err := o.properties(number)
		if err != nil {
			return nil, err
		}
		bundle := object{"schema": "olm.bundle", "package": o.name, "name": o.version(number), "properties": properties}
		if o.image {
			bundle["image"] = images + "/" + o.name + ":v" + number
		}
		blobs = append(blobs, bundle)
	}
	return append(blobs, object{"schema": "olm.channel", "package": o.name, "name": "stable", "entries": entries}), nil
}

// properties returns the properties of the bundle of a version. Without an image, they contain its objects.
func (o *operator) properties(number string) ([]any, error) {
	property := func(kind string, value any) object { return object{"type": kind, "value": value} }
	all := []any{property("olm.package", object{"packageName": o.name, "version": number})}
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
	if o.image {
		return all, nil
	}
	for _, manifest := range o.manifests(number) {
		text, err := json.Marshal(manifest)
		if err != nil {
			return nil, fmt.Errorf("encoding an object of %s: %w", o.name, err)
		}
		all = append(all, property("olm.bundle.object", object{"data": text}))
	}
	return all, nil
}
