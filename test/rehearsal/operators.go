package main

import (
	"encoding/json"
	"fmt"
	"strings"

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
	// failed is true if its version cannot be installed: it supports only all namespaces, and its OperatorGroup selects one.
	failed bool
	// objects are further objects of its bundle, which then is an image.
	objects []object
	// requires is the operator whose kind it requires.
	requires     string
	subscription subscriptionSettings
}

// subscriptionSettings are the settings of the Subscription of an operator.
type subscriptionSettings struct {
	// none is true if no user subscribes to the operator, which is installed as a dependency.
	none bool
	// manual is true if updates wait for approval; there is one.
	manual bool
	config *operatorsv1alpha1.SubscriptionConfig
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
		ownNamespace(operator{name: "manual", shape: "update waits for approval", subscription: subscriptionSettings{manual: true}, account: true}),
		ownNamespace(operator{name: "failing", shape: "failed version", failed: true, account: true}),
		ownNamespace(operator{name: "dependent", shape: "requires another operator", requires: "dependency", account: true}),
		{
			name: "dependency", shape: "installed as a dependency", namespace: "dependent", targets: []string{"dependent"},
			subscription: subscriptionSettings{none: true}, account: true,
		},
		ownNamespace(operator{name: "imaged", shape: "bundle image with further objects", objects: furtherObjects("imaged"), account: true}),
		ownNamespace(operator{
			name: "configured", shape: "settings in the Subscription", subscription: subscriptionSettings{config: settings()}, account: true,
		}),
	}
}

// late returns the operator whose InstallPlan is under way at a switch: its PodDisruptionBudget exceeds a quota.
func late(round int, direction string) operator {
	name := fmt.Sprintf("late%d%s", round, direction)
	return ownNamespace(operator{name: name, shape: "InstallPlan under way", objects: furtherObjects(name), account: true})
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

// versions returns the versions of the kind.
func (o *operator) versions() []string {
	if o.webhook == conversion {
		return []string{"v1", "v2"}
	}
	return []string{"v1"}
}

// numbers returns the numbers of the versions in the catalog.
func (o *operator) numbers() []string {
	if o.subscription.manual {
		return []string{installed, newer}
	}
	return []string{installed}
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
		properties, err := (&bundle{operator: o, number: number}).properties()
		if err != nil {
			return nil, err
		}
		blob := object{"schema": "olm.bundle", "package": o.name, "name": o.version(number), "properties": properties}
		if len(o.objects) > 0 {
			blob["image"] = images + "/" + o.name + ":v" + number
		}
		blobs = append(blobs, blob)
	}
	return append(blobs, object{"schema": "olm.channel", "package": o.name, "name": "stable", "entries": entries}), nil
}
