package inputs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

const (
	lamp = `
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: lamp, namespace: shop}
spec: {name: lamp, source: wares, sourceNamespace: olm}
`
	present = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: lamp.v1}
spec: {version: 1.0.0}
`
)

// names returns the names of the objects that were read.
func names(o *Objects) []string {
	var out []string
	for _, s := range o.Subscriptions {
		out = append(out, "Subscription "+s.Namespace+"/"+s.Name)
	}
	for _, c := range o.Versions {
		out = append(out, "ClusterServiceVersion "+c.Namespace+"/"+c.Name+" "+string(c.Status.Phase))
	}
	for _, p := range o.Plans {
		out = append(out, "InstallPlan "+p.Namespace+"/"+p.Name)
	}
	for _, g := range o.Groups {
		out = append(out, "OperatorGroup "+g.Namespace+"/"+g.Name)
	}
	for _, c := range o.Catalogs {
		out = append(out, "CatalogSource "+c.Namespace+"/"+c.Name)
	}
	return append(out, o.Notes...)
}

func TestRead(t *testing.T) {
	for name, tt := range map[string]struct {
		reason, text string
		want         []string
	}{
		"One":       {reason: "one object", text: lamp, want: []string{"Subscription shop/lamp"}},
		"Several":   {reason: "documents, empty ones too", text: "---\n" + lamp + "---\n---" + present, want: []string{"Subscription shop/lamp", "ClusterServiceVersion here/lamp.v1 Succeeded"}},
		"JSON":      {reason: "JSON is YAML", text: `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription","metadata":{"name":"a"},"spec":{"name":"a","source":"b","sourceNamespace":"c"}}`, want: []string{"Subscription here/a"}},
		"List":      {reason: "as kubectl get prints it", text: "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(lamp), "\n", "\n  ") + "\n", want: []string{"Subscription shop/lamp"}},
		"Others":    {reason: "what belongs to it is kept, what does not is named", text: lamp + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\napiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: g}\n---\napiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: c, namespace: olm}\nspec: {sourceType: grpc, address: 'h:1', updateStrategy: {}}\n---\napiVersion: operators.coreos.com/v1alpha1\nkind: InstallPlan\nmetadata: {name: p}\n", want: []string{"Subscription shop/lamp", "InstallPlan here/p", "OperatorGroup here/g", "CatalogSource olm/c", "test.yaml: ignored ConfigMap x; only kinds of operators.coreos.com matter here"}},
		"Knative":   {reason: "a Subscription of somebody else's is no Subscription", text: lamp + "---\napiVersion: messaging.example.org/v1\nkind: Subscription\nmetadata: {name: x}\n", want: []string{"Subscription shop/lamp", "test.yaml: ignored Subscription x; only kinds of operators.coreos.com matter here"}},
		"SlipOfPen": {reason: "a field that does not exist is said", text: strings.Replace(lamp, "spec: {", "spec: {chanel: beta, ", 1), want: []string{"Subscription shop/lamp", `test.yaml: Subscription lamp: unknown field "spec.chanel"; the API server would drop it`}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Objects{}
			if err := o.Read("test.yaml", strings.NewReader(tt.text), "here"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, names(o)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	with := func(spec string) string {
		head, _, _ := strings.Cut(lamp, "spec:")
		return head + spec
	}
	for name, tt := range map[string]struct{ text, want string }{
		"Empty":       {text: "", want: "test.yaml holds no object; it has to be YAML or JSON with a Subscription"},
		"NotYAML":     {text: lamp + "---\n{a: [", want: "test.yaml, document 2: not YAML: "},
		"Tab":         {text: "apiVersion: v1\n\tkind: x", want: "test.yaml, document 1: not YAML: yaml: line 2"},
		"Text":        {text: "hello", want: "test.yaml, document 1: not an object; it has to begin with apiVersion and kind"},
		"NoKind":      {text: "spec: {}", want: "test.yaml, document 1: an object without kind or apiVersion; add both"},
		"NoName":      {text: strings.Replace(lamp, "name: lamp, namespace", "namespace", 1), want: "Subscription without metadata.name: metadata.name is missing; name the object"},
		"NoSpec":      {text: with(""), want: "Subscription lamp: spec is missing; add spec.name, spec.source and spec.sourceNamespace"},
		"NoPackage":   {text: with("spec: {source: a, sourceNamespace: b}"), want: "Subscription lamp: spec.name is missing; set it to the name of the package"},
		"NoSource":    {text: with("spec: {name: a}"), want: "spec.source is missing; set it to the name of the CatalogSource\nspec.sourceNamespace is missing; set it to the namespace"},
		"Approval":    {text: with("spec: {name: a, source: b, sourceNamespace: c, installPlanApproval: manual}"), want: `spec.installPlanApproval is "manual"; set it to Automatic or Manual`},
		"WrongType":   {text: with("spec: {name: [a]}"), want: "test.yaml, document 1: Subscription lamp: decoding: "},
		"BadItem":     {text: "apiVersion: v1\nkind: List\nitems: [1]", want: "test.yaml, document 1: items[0] is not an object"},
		"InItem":      {text: "apiVersion: v1\nkind: List\nitems: [{kind: x}]", want: "test.yaml, document 1: items[0]: an object without kind or apiVersion"},
		"Namespace":   {text: strings.Replace(lamp, "namespace: shop", "namespace: Shop", 1), want: `metadata.namespace is "Shop": `},
		"CatalogSpec": {text: "apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: c}\nspec: 7\n", want: "CatalogSource c: decoding CatalogSource here/c: "},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&Objects{}).Read("test.yaml", strings.NewReader(tt.text), "here")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{lamp, present, lamp + "---" + present, "kind: List\napiVersion: v1\nitems: [{}]", "a: &a [*a]", "---\n---", "{"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o := &Objects{}
		if o.Read("test.yaml", strings.NewReader(text), "here") != nil {
			return
		}
		for _, sub := range o.Subscriptions {
			if sub.Spec.Package == "" || sub.Name == "" {
				t.Errorf("a Subscription that says nothing: %+v", sub)
			}
		}
	})
}

func TestApply(t *testing.T) {
	there, files := &Objects{}, &Objects{}
	for o, text := range map[*Objects]string{there: lamp + "---" + present, files: strings.ReplaceAll(lamp, "name: lamp, source", "name: lantern, source") + "---" + strings.ReplaceAll(strings.Replace(lamp, "{name: lamp,", "{name: second,", 1), "spec: {name: lamp,", "spec: {name: lantern,")} {
		if err := o.Read("test.yaml", strings.NewReader(text), "shop"); err != nil {
			t.Fatal(err)
		}
	}
	there.Subscriptions[0].UID = "known"
	there.Subscriptions[0].Status.InstalledCSV = "lamp.v1"
	there.apply(files, moment)
	var got []string
	for _, s := range there.Subscriptions {
		got = append(got, s.Name+" "+s.Spec.Package+" "+string(s.UID)+" "+s.Status.InstalledCSV)
	}
	if diff := cmp.Diff([]string{"lamp lantern known lamp.v1", "second lantern  "}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if made := there.Subscriptions[1].CreationTimestamp; made != moment {
		t.Errorf("made at %s", made)
	}
	if n := len(there.Versions); n != 1 || there.Versions[0].Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
		t.Errorf("%d versions", n)
	}
}
