package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandlery/chandlery/bundles/fbc"
)

func TestDocumentNamesExceptions(t *testing.T) {
	t.Parallel()
	if err := document(); err != nil {
		t.Error(err)
	}
}

func TestOperators(t *testing.T) {
	t.Parallel()
	all := operators()
	if len(all) != 16 {
		t.Errorf("%d operators, want sixteen", len(all))
	}
	content, err := catalog(append(all, late(1, "there")), "registry.example/bundles")
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := fbc.Load(t.Context(), fstest.MapFS{"catalog.json": &fstest.MapFile{Data: content}}, fbc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded.Packages) != len(all)+1 {
		t.Errorf("the catalog has %d packages", len(loaded.Packages))
	}
}

// TestPromises checks that no exception covers what a migration must never change.
func TestPromises(t *testing.T) {
	t.Parallel()
	for _, o := range operators() {
		for _, d := range []difference{
			{kind: "Deployment", name: o.name, field: "metadata.generation"},
			{kind: "Deployment", name: o.name, field: "metadata.uid"},
			{kind: "Pod", name: o.name + "-5d9c7b-x2x4z", before: present, after: absent},
			{kind: "Pod", name: o.name + "-5d9c7b-x2x4z", field: "status.containerStatuses"},
			{kind: "ClusterServiceVersion", name: o.version(installed), field: "metadata.uid"},
			{kind: "ClusterServiceVersion", name: o.version(installed), before: present, after: absent},
			{kind: "Subscription", name: o.name, field: "spec.startingCSV"},
			{kind: "Secret", name: o.name + "-service-cert", field: "data.tls.crt"},
			{kind: "CustomResourceDefinition", name: o.resource() + "." + o.group(), field: "metadata.uid"},
		} {
			if d.kind != "CustomResourceDefinition" {
				d.namespace = o.namespace
			}
			for _, exceptions := range [][]exception{atTakeover(), atHandback()} {
				if named, unnamed := judge([]difference{d}, exceptions); len(unnamed) != 1 {
					t.Errorf("%s: named by %v", d, named)
				}
			}
		}
	}
	if _, unnamed := judge([]difference{{kind: "Deployment", namespace: "olm", name: "packageserver", field: "metadata.generation"}}, atTakeover()); len(unnamed) != 1 {
		t.Error("the package server may be rolled out")
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	exceptions := []exception{{"scaled", isOLM}, {"labels", has("InstallPlan", "metadata.labels")}}
	named, unnamed := judge([]difference{
		{kind: "Deployment", namespace: "olm", name: "olm-operator", field: "spec.replicas"},
		{kind: "Pod", namespace: "olm", name: "catalog-operator-1", before: present, after: absent},
		{kind: "InstallPlan", namespace: "plain", name: "install-1", field: "metadata.labels.x"},
		{kind: "InstallPlan", namespace: "plain", name: "install-1", field: "spec.approved"},
	}, exceptions)
	if named["scaled"] != 2 || named["labels"] != 1 || len(unnamed) != 1 || unnamed[0].field != "spec.approved" {
		t.Errorf("named %v, unnamed %v", named, unnamed)
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	made := func(name, uid, colour string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: object{
			"kind": "Lamp", "metadata": object{"namespace": "shop", "name": name, "uid": uid, "resourceVersion": uid + colour}, "spec": object{"colour": colour},
		}}
	}
	before := snapshot{"Lamp shop/a": made("a", "1", "red"), "Lamp shop/b": made("b", "2", "red"), "Lamp shop/c": made("c", "3", "red")}
	after := snapshot{"Lamp shop/a": made("a", "1", "blue"), "Lamp shop/b": made("b", "2", "red"), "Lamp shop/d": made("d", "4", "red")}
	var got []string
	for _, d := range differences(before, after) {
		got = append(got, d.String())
	}
	want := []string{`Lamp shop/a spec.colour: "red" -> "blue"`, "Lamp shop/c : present -> absent", "Lamp shop/d : absent -> present"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAdapt(t *testing.T) {
	t.Parallel()
	const containers = `{containers: [{name: main, env: [{name: A, value: b}]}]}`
	all, err := adapt([]byte(`---
kind: Deployment
metadata: {name: catalog-operator}
spec: {template: {spec: `+containers+`}}
---
kind: ClusterServiceVersion
metadata: {name: packageserver}
spec: {install: {spec: {deployments: [{spec: {template: {spec: `+containers+`}}}]}}}
---
kind: CatalogSource
metadata: {name: operatorhubio-catalog}
spec: {image: other}
`), "shelf:v1", "socks5://10.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 3 {
		t.Fatalf("%d objects", len(all))
	}
	for i, wants := range [][]string{{"GRPC_PROXY", `"A"`}, {"GRPC_PROXY", `"A"`}, {"shelf:v1"}} {
		for _, want := range wants {
			if got := text(all[i].Object); !strings.Contains(got, want) {
				t.Errorf("%s lacks %s", got, want)
			}
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	good := outcome{round: 1, change: "take-over", gap: 2 * time.Second, limit: limit, objects: 9, named: map[string]int{atTakeover()[0].text: 4}}
	for name, tc := range map[string]struct {
		change func(*outcome)
		says   string
	}{
		"as promised":    {func(*outcome) {}, "as promised"},
		"too long":       {func(o *outcome) { o.gap = 4 * time.Second }, "4.0 s without a manager"},
		"late leader":    {func(o *outcome) { o.lead = 3 * time.Second }, "led after 3.0 s"},
		"failed call":    {func(o *outcome) { o.calls.failed = []string{"a call"} }, "a call"},
		"failed command": {func(o *outcome) { o.said = "exit status 2" }, "exit status 2"},
		"undocumented":   {func(o *outcome) { o.unnamed = []difference{{kind: "Pod", name: "plain"}} }, "Pod plain"},
	} {
		o := good
		tc.change(&o)
		var b strings.Builder
		err := report(&b, []outcome{o})
		if errors.Is(err, errDifferent) == (name == "as promised") || !strings.Contains(b.String(), tc.says) {
			t.Errorf("%s: error %v\n%s", name, err, b.String())
		}
	}
	if err := report(&strings.Builder{}, nil); !errors.Is(err, errDifferent) {
		t.Errorf("a rehearsal without rounds passes: %v", err)
	}
}
