package manifest_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/compressed"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/manifest"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

const fullCSV = `{
  "metadata": {"name": "lamp.v2.0.0", "labels": {"catalog": "lies", "operatorframework.io/arch.arm64": "supported"},
    "annotations": {"alm-examples": "[]"}},
  "spec": {
    "displayName": "Lamp", "description": "# Light", "version": "v2.0", "maturity": "stable", "minKubeVersion": "1.20.0",
    "annotations": {"not": "shown"}, "keywords": ["light"],
    "provider": {"name": "Red Lamp, Inc.", "url": "https://lamp.example"},
    "links": [{"name": "b", "url": "https://b.example"}, {"name": "a", "url": "https://a.example"}],
    "maintainers": [{"name": "Ann", "email": "ann@lamp.example"}],
    "icon": [{"base64data": "aGk=", "mediatype": "image/png"}, {"base64data": "eQ=="}],
    "installModes": [{"type": "AllNamespaces", "supported": true}, {"type": "OwnNamespace", "supported": false}],
    "customresourcedefinitions": {"owned": [{"name": "lamps.example", "version": "v1", "kind": "Lamp", "displayName": "Lamp",
      "description": "A lamp", "resources": [{"kind": "Pod"}], "specDescriptors": [{"path": "watts"}]}]},
    "apiservicedefinitions": {"required": [{"name": "bulbs", "group": "bulb.example", "version": "v1", "kind": "Bulb",
      "deploymentName": "bulb", "containerPort": 443}]},
    "nativeAPIs": [{"group": "apps", "version": "v1", "kind": "Deployment"}],
    "relatedImages": [{"name": "z", "image": "example/z"}, {"name": "a", "image": "example/a"}],
    "install": {"strategy": "deployment", "spec": {"deployments": [{"spec": {"template": {"spec": {
      "containers": [{"image": "example/z"}, {"image": "example/m"}], "initContainers": [{"image": "example/i"}]}}}}]}}
  }
}`

func TestDescription(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ csv, want string }{
		"all fields": {csv: fullCSV, want: `{"displayName":"Lamp","version":"2.0.0","provider":{"name":"Red Lamp, Inc.","url":"https://lamp.example"},
			"annotations":{"alm-examples":"[]"},"keywords":["light"],
			"links":[{"name":"b","url":"https://b.example"},{"name":"a","url":"https://a.example"}],
			"maintainers":[{"name":"Ann","email":"ann@lamp.example"}],"maturity":"stable","description":"# Light",
			"installModes":[{"type":"AllNamespaces","supported":true},{"type":"OwnNamespace","supported":false}],
			"customresourcedefinitions":{"owned":[{"name":"lamps.example","version":"v1","kind":"Lamp","displayName":"Lamp","description":"A lamp"}]},
			"apiservicedefinitions":{"required":[{"name":"bulbs","group":"bulb.example","version":"v1","kind":"Bulb"}]},
			"nativeApis":[{"group":"apps","version":"v1","kind":"Deployment"}],"minKubeVersion":"1.20.0",
			"relatedImages":["example/a","example/i","example/m","example/z"]}`},
		"no field": {
			csv:  `{"metadata":{"name":"lamp"}}`,
			want: `{"version":"0.0.0","provider":{},"customresourcedefinitions":{},"apiservicedefinitions":{}}`,
		},
		"an install strategy that cannot be read": {
			csv:  `{"metadata":{"name":"lamp"},"spec":{"version":"","install":{"spec":{"deployments":"none"}}}}`,
			want: `{"version":"0.0.0","provider":{},"customresourcedefinitions":{},"apiservicedefinitions":{}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			head, err := manifest.ParseHead(test.csv)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(head.Description)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, test.want), decode(t, string(got))); diff != "" {
				t.Errorf("description (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnreadableHeads(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing": "", "no JSON": "{", "no name": "{}", "a version that is none": `{"metadata":{"name":"a"},"spec":{"version":"x"}}`,
	} {
		if _, err := manifest.ParseHead(text); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := manifest.ParseIcon(text); err == nil {
			t.Errorf("%s: no error for the icon", name)
		}
	}
}

func TestParseIcon(t *testing.T) {
	t.Parallel()
	icon, err := manifest.ParseIcon(fullCSV)
	if want := (manifest.Icon{Data: "aGk=", MediaType: "image/png"}); err != nil || icon != want {
		t.Errorf("%+v, %v", icon, err)
	}
	icon, err = manifest.ParseIcon(`{"metadata":{"name":"lamp"}}`)
	if err != nil || icon != (manifest.Icon{}) {
		t.Errorf("without an icon: %+v, %v", icon, err)
	}
}

func decode(t *testing.T, text string) any {
	t.Helper()
	var out any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return out
}

// lamp returns a package with the channels b, a and c, of which b is the default. Everything is deprecated in a.
func lamp(t *testing.T) *content.Package {
	t.Helper()
	b := content.NewBuilder(1 << 20)
	for _, e := range []content.ChannelEntry{
		{Channel: "b", Bundle: "lamp.v1.9.0", Version: "1.9.0"},
		{Channel: "b", Bundle: "lamp.v1.10.0", Version: "1.10.0", Replaces: "lamp.v1.9.0"},
		{Channel: "b", Bundle: "lamp.v2.0.0-rc.1", Version: "2.0.0-rc.1", Replaces: "lamp.v1.10.0"},
		{Channel: "b", Bundle: "lamp.v2.0.0", Version: "2.0.0", Replaces: "lamp.v2.0.0-rc.1"},
		{Channel: "a", Bundle: "lamp.v1.9.0", Version: "1.9.0"},
		{Channel: "c", Bundle: "lamp.v0.1.0", Version: "0.1.0", Properties: []constraint.Property{{Type: constraint.TypeDeprecated, Value: "{}"}}},
		{Channel: "c", Bundle: "lamp.v0.2.0", Version: "0.2.0", Replaces: "lamp.v0.1.0"},
	} {
		e.Package = "lamp"
		e.Properties = append(e.Properties, constraint.Property{Type: "olm.package", Value: fmt.Sprintf(`{"packageName":"lamp","version":%q}`, e.Version)})
		if err := b.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	b.Describe("lamp", "b", "use torch")
	b.DeprecateChannel("lamp", "a", "use b")
	b.DeprecateBundle("lamp", "lamp.v1.9.0", "too old")
	return b.Build().Package("lamp")
}

// heads returns the heads of channels of the package lamp.
func heads(t *testing.T, names ...string) map[string]manifest.Head {
	t.Helper()
	all := map[string]string{
		"a": `{"metadata":{"name":"lamp.v1.9.0"},"spec":{"provider":{"name":"Other"}}}`, "b": fullCSV, "c": `{"metadata":{"name":"lamp.v0.2.0"}}`,
	}
	out := map[string]manifest.Head{}
	for _, name := range names {
		head, err := manifest.ParseHead(all[name])
		if err != nil {
			t.Fatal(err)
		}
		head.Bundle = "lamp-" + name
		out[name] = head
	}
	return out
}

// pack returns the package lamp with some channels.
func pack(t *testing.T, channels ...string) *manifest.Package {
	t.Helper()
	z, err := compressed.NewCompressor()
	if err != nil {
		t.Fatal(err)
	}
	p, err := manifest.NewPackage(z, lamp(t), heads(t, channels...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// statusOf returns the status of a package, without descriptions.
func statusOf(t *testing.T, p *manifest.Package) manifest.Status {
	t.Helper()
	text, err := p.StatusJSON(&manifest.Source{Namespace: "olm", Name: "shop", DisplayName: "Shop"})
	if err != nil {
		t.Fatal(err)
	}
	var s manifest.Status
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	for i := range s.Channels {
		s.Channels[i].CurrentCSVDesc = manifest.Description{}
	}
	return s
}

func TestStatus(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(statusOf(t, pack(t, "a", "b", "c")))
	if err != nil {
		t.Fatal(err)
	}
	const empty = `"currentCSVDesc":{"version":"0.0.0","provider":{},"customresourcedefinitions":{},"apiservicedefinitions":{}}`
	want := `{"catalogSource":"shop","catalogSourceDisplayName":"Shop","catalogSourcePublisher":"","catalogSourceNamespace":"olm",
		"packageName":"lamp","defaultChannel":"b","deprecation":{"message":"use torch"},
		"provider":{"name":"Red Lamp, Inc.","url":"https://lamp.example"},"channels":[
		{"name":"a","currentCSV":"lamp.v1.9.0",` + empty + `,"deprecation":{"message":"use b"},
		 "entries":[{"name":"lamp.v1.9.0","version":"1.9.0","deprecation":{"message":"too old"}}]},
		{"name":"b","currentCSV":"lamp.v2.0.0",` + empty + `,"entries":[{"name":"lamp.v2.0.0","version":"2.0.0"},
		 {"name":"lamp.v2.0.0-rc.1","version":"2.0.0-rc.1"},{"name":"lamp.v1.10.0","version":"1.10.0"},
		 {"name":"lamp.v1.9.0","version":"1.9.0","deprecation":{"message":"too old"}}]},
		{"name":"c","currentCSV":"lamp.v0.2.0",` + empty + `,"entries":[{"name":"lamp.v0.2.0","version":"0.2.0"}]}]}`
	if diff := cmp.Diff(decode(t, want), decode(t, string(got))); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// TestMissingHeads leaves out channels whose heads cannot be read.
func TestMissingHeads(t *testing.T) {
	t.Parallel()
	s := statusOf(t, pack(t, "a", "c"))
	if s.DefaultChannel != "a" || s.Provider.Name != "Other" || len(s.Channels) != 2 {
		t.Errorf("without the default channel: %+v", s)
	}
	if p := pack(t); p != nil {
		t.Errorf("a package without channels: %+v", p)
	}
}

func TestPackageLabels(t *testing.T) {
	t.Parallel()
	source := &manifest.Source{Namespace: "olm", Name: "shop", Labels: map[string]string{"team": "blue", "provider": "hidden"}}
	want := map[string]string{
		"catalog": "shop", "catalog-namespace": "olm", "team": "blue", "provider": "Red Lamp, Inc.", "provider-url": "https://lamp.example",
		"operatorframework.io/arch.arm64": "supported", "operatorframework.io/os.linux": "supported",
	}
	if diff := cmp.Diff(want, pack(t, "a", "b").Labels(source)); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	want = map[string]string{
		"catalog": "shop", "catalog-namespace": "olm", "team": "blue", "provider": "Other", "provider-url": "",
		"operatorframework.io/arch.amd64": "supported", "operatorframework.io/os.linux": "supported",
	}
	p := pack(t, "a")
	if diff := cmp.Diff(want, p.Labels(source)); diff != "" {
		t.Errorf("labels of a head without labels (-want +got):\n%s", diff)
	}
	if p.Icon != (manifest.IconSource{}) {
		t.Errorf("icon of a head without one: %+v", p.Icon)
	}
	if got := pack(t, "b").Icon; got != (manifest.IconSource{Channel: "b", Bundle: "lamp-b", CSV: "lamp.v2.0.0"}) {
		t.Errorf("icon: %+v", got)
	}
}

func TestIndex(t *testing.T) {
	t.Parallel()
	x := manifest.NewIndex("olm")
	add := func(namespace, name string, priority int, packages ...string) {
		c := manifest.Catalog{Source: &manifest.Source{Namespace: namespace, Name: name, Priority: priority, Created: time.Unix(1, 0)}}
		for _, p := range packages {
			c.Packages = append(c.Packages, &manifest.Package{Name: p})
		}
		x.Set(c)
	}
	add("olm", "zoo", 1, "lamp", "torch")
	add("olm", "ark", 0, "lamp")
	add("olm", "bay", 1, "lamp")
	add("a", "own", -5, "kettle", "lamp")
	list := func(namespace string) (found []string) {
		for _, item := range x.List(namespace) {
			found = append(found, item.Package.Name+" "+item.Source.Namespace+"/"+item.Source.Name)
		}
		return found
	}
	for namespace, want := range map[string][]string{
		"":     {"kettle a/own", "lamp a/own", "lamp olm/ark", "lamp olm/bay", "lamp olm/zoo", "torch olm/zoo"},
		"a":    {"kettle a/own", "lamp a/own", "lamp olm/ark", "lamp olm/bay", "lamp olm/zoo", "torch olm/zoo"},
		"olm":  {"lamp olm/ark", "lamp olm/bay", "lamp olm/zoo", "torch olm/zoo"},
		"none": {"lamp olm/ark", "lamp olm/bay", "lamp olm/zoo", "torch olm/zoo"},
	} {
		if diff := cmp.Diff(want, list(namespace)); diff != "" {
			t.Errorf("packages in %q (-want +got):\n%s", namespace, diff)
		}
	}
	for range 100 {
		for namespace, want := range map[string]string{"a": "own", "b": "bay", "olm": "bay"} {
			if item, found := x.Get(namespace, "lamp"); !found || item.Source.Name != want {
				t.Fatalf("lamp in %s is of %+v, want %s", namespace, item.Source, want)
			}
		}
	}
	if item, found := x.Get("b", "kettle"); found {
		t.Errorf("kettle in b: %+v", item)
	}
	x.Remove(types.NamespacedName{Namespace: "olm", Name: "bay"})
	if item, _ := x.Get("b", "lamp"); item.Source.Name != "zoo" {
		t.Errorf("lamp is of %+v after bay is gone", item.Source)
	}
	if x.Ready() {
		t.Error("ready before the first reading")
	}
	x.SetReady()
	if !x.Ready() {
		t.Error("not ready")
	}
}
