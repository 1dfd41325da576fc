package merge_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/chandlery/chandlery/supervisor/apply/merge"
)

func fields(t *testing.T, text string) *fieldpath.Set {
	t.Helper()
	set := &fieldpath.Set{}
	if text == "" {
		return set
	}
	if err := set.FromJSON(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return set
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	portTCP = `k:{\"port\":53,\"protocol\":\"TCP\"}`
	portUDP = `k:{\"port\":53,\"protocol\":\"UDP\"}`
)

func TestObjects(t *testing.T) {
	for _, tt := range []struct {
		reason       string
		live, wanted string
		mine, others string
		want         string
	}{
		{
			reason: "what the manifest no longer has goes",
			live:   `{"data":{"a":"1","b":"1"}}`, wanted: `{"data":{"a":"2"}}`,
			mine: `{"f:data":{".":{},"f:a":{},"f:b":{}}}`,
			want: `{"data":{"a":"2"}}`,
		},
		{
			reason: "what others set stays, and what was set by others too",
			live:   `{"data":{"a":"1","b":"1","c":"1"}}`, wanted: `{"data":{"a":"2"}}`,
			mine: `{"f:data":{".":{},"f:a":{},"f:b":{}}}`, others: `{"f:data":{"f:b":{},"f:c":{}}}`,
			want: `{"data":{"a":"2","b":"1","c":"1"}}`,
		},
		{
			reason: "a null takes away what the manifest set before, though others set it too",
			live:   `{"data":{"a":"1","b":"1","c":"1"}}`, wanted: `{"data":{"a":"1","b":null,"c":null}}`,
			mine: `{"f:data":{"f:a":{},"f:b":{}}}`, others: `{"f:data":{"f:b":{},"f:c":{}}}`,
			want: `{"data":{"a":"1","b":null,"c":"1"}}`,
		},
		{
			reason: "a map that others set stays when it becomes empty",
			live:   `{"spec":{"x":{"a":"1"}}}`, wanted: `{"kind":"A"}`,
			mine: `{"f:spec":{"f:x":{"f:a":{}}}}`, others: `{"f:spec":{"f:x":{".":{}}}}`,
			want: `{"kind":"A","spec":{"x":{}}}`,
		},
		{
			reason: "a list that others set stays when it becomes empty",
			live:   `{"spec":{"x":[{"name":"a"}]}}`, wanted: `{"kind":"A"}`,
			mine: `{"f:spec":{"f:x":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}}`, others: `{"f:spec":{"f:x":{".":{}}}}`,
			want: `{"kind":"A","spec":{"x":[]}}`,
		},
		{
			reason: "what no manager is known to have set stays",
			live:   `{"spec":{"clusterIP":"10.0.0.1","x":1}}`, wanted: `{"spec":{"x":2}}`,
			mine: `{"f:spec":{"f:x":{}}}`,
			want: `{"spec":{"clusterIP":"10.0.0.1","x":2}}`,
		},
		{
			reason: "a part goes with the defaults in it",
			live:   `{"spec":{"source":{"configMap":{"name":"a","mode":420}}}}`, wanted: `{"spec":{"source":{"secret":{"name":"b"}}}}`,
			mine: `{"f:spec":{"f:source":{"f:configMap":{"f:name":{}}}}}`,
			want: `{"spec":{"source":{"secret":{"name":"b"}}}}`,
		},
		{
			reason: "labels that no manager is known to have set stay",
			live:   `{"metadata":{"labels":{"a":"1","b":"1"}}}`, wanted: `{"metadata":{"name":"x"}}`,
			mine: `{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`,
			want: `{"metadata":{"name":"x","labels":{"b":"1"}}}`,
		},
		{
			reason: "annotations that no manager is known to have set stay",
			live:   `{"metadata":{"annotations":{"a":"1","b":"1"}}}`, wanted: `{"metadata":{"name":"x"}}`,
			mine: `{"f:metadata":{"f:annotations":{".":{},"f:a":{}}}}`,
			want: `{"metadata":{"name":"x","annotations":{"b":"1"}}}`,
		},
		{
			reason: "entries that are in a list twice are not merged",
			live:   `{"c":[{"name":"A","value":"1","x":1},{"name":"A","value":"2"}]}`,
			wanted: `{"c":[{"name":"A","value":"1"},{"name":"A","value":"3"}]}`,
			mine:   `{"f:c":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}}}`,
			others: `{"f:c":{"k:{\"name\":\"A\"}":{"f:x":{}}}}`,
			want:   `{"c":[{"name":"A","value":"1"},{"name":"A","value":"3"}]}`,
		},
		{
			reason: "a list whose entries have different keys is replaced",
			live:   `{"p":[{"name":"a","port":1}]}`, wanted: `{"p":[{"name":"b","port":2}]}`,
			mine: `{"f:p":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}`, others: `{"f:p":{"k:{\"port\":1}":{".":{},"f:port":{}}}}`,
			want: `{"p":[{"name":"b","port":2}]}`,
		},
		{
			reason: "no other part of a key has a default",
			live:   `{"c":[{"type":"TCP","x":1}]}`, wanted: `{"c":[{"x":2}]}`,
			others: `{"f:c":{"k:{\"type\":\"TCP\"}":{".":{},"f:type":{},"f:x":{}}}}`,
			want:   `{"c":[{"x":2},{"type":"TCP","x":1}]}`,
		},
		{
			reason: "labels that are all gone go as a whole",
			live:   `{"metadata":{"labels":{"a":"1"}}}`, wanted: `{"metadata":{"name":"x"}}`,
			mine: `{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`,
			want: `{"metadata":{"name":"x"}}`,
		},
		{
			reason: "a map that is one value is replaced",
			live:   `{"spec":{"selector":{"a":"1"}}}`, wanted: `{"spec":{"selector":{"b":"1"}}}`,
			others: `{"f:spec":{"f:selector":{}}}`,
			want:   `{"spec":{"selector":{"b":"1"}}}`,
		},
		{
			reason: "a list that is one value is replaced",
			live:   `{"rules":[{"verbs":["get"]}]}`, wanted: `{"rules":[{"verbs":["list"]}]}`,
			mine: `{"f:rules":{}}`,
			want: `{"rules":[{"verbs":["list"]}]}`,
		},
		{
			reason: "entries of a list with keys are merged, and those of others keep their place",
			live:   `{"c":[{"name":"theirs","image":"t"},{"name":"a","image":"1","tty":true},{"name":"old"}]}`,
			wanted: `{"c":[{"name":"a","image":"2"},{"name":"b"}]}`,
			mine:   `{"f:c":{"k:{\"name\":\"a\"}":{".":{},"f:image":{},"f:name":{}},"k:{\"name\":\"old\"}":{".":{},"f:name":{}}}}`,
			others: `{"f:c":{"k:{\"name\":\"a\"}":{"f:tty":{}},"k:{\"name\":\"theirs\"}":{".":{},"f:image":{},"f:name":{}}}}`,
			want:   `{"c":[{"name":"theirs","image":"t"},{"name":"a","image":"2","tty":true},{"name":"b"}]}`,
		},
		{
			reason: "the protocol of a port is TCP where it is not mentioned",
			live:   `{"p":[{"port":53,"protocol":"UDP"},{"port":53,"protocol":"TCP","nodePort":1}]}`,
			wanted: `{"p":[{"port":53,"protocol":"UDP"},{"port":53}]}`,
			mine:   `{"f:p":{".":{},"` + portUDP + `":{".":{},"f:port":{},"f:protocol":{}},"` + portTCP + `":{".":{},"f:port":{},"f:protocol":{}}}}`,
			want:   `{"p":[{"port":53,"protocol":"UDP"},{"port":53,"nodePort":1}]}`,
		},
		{
			reason: "entries that are there twice are one value",
			live:   `{"env":[{"name":"A","value":"1"},{"name":"B","value":"1"}]}`,
			wanted: `{"env":[{"name":"A","value":"2"},{"name":"A","value":"3"}]}`,
			mine:   `{"f:env":{".":{},"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}}}}`,
			want:   `{"env":[{"name":"A","value":"2"},{"name":"A","value":"3"}]}`,
		},
		{
			reason: "entries that were there twice become one",
			live:   `{"env":[{"name":"A","value":"2"},{"name":"A","value":"3"}]}`,
			wanted: `{"env":[{"name":"A","value":"4"}]}`,
			mine:   `{"f:env":{".":{},"k:{\"name\":\"A\"}":{}}}`,
			want:   `{"env":[{"name":"A","value":"4"}]}`,
		},
		{
			reason: "a list of distinct values is joined",
			live:   `{"metadata":{"finalizers":["theirs","old"]}}`, wanted: `{"metadata":{"finalizers":["new"]}}`,
			mine: `{"f:metadata":{"f:finalizers":{".":{},"v:\"old\"":{}}}}`, others: `{"f:metadata":{"f:finalizers":{"v:\"theirs\"":{}}}}`,
			want: `{"metadata":{"finalizers":["new","theirs"]}}`,
		},
		{
			reason: "owners of others stay",
			live:   `{"metadata":{"ownerReferences":[{"uid":"1"},{"uid":"2"}]}}`, wanted: `{"metadata":{"ownerReferences":[{"uid":"3"}]}}`,
			mine: `{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"1\"}":{}}}}`, others: `{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"2\"}":{}}}}`,
			want: `{"metadata":{"ownerReferences":[{"uid":"3"},{"uid":"2"}]}}`,
		},
		{
			reason: "null is no value where others set one, and takes away what the last manifest set",
			live:   `{"spec":{"replicas":3,"paused":true}}`, wanted: `{"spec":{"replicas":null,"paused":null,"x":null}}`,
			mine: `{"f:spec":{"f:paused":{}}}`, others: `{"f:spec":{"f:replicas":{}}}`,
			want: `{"spec":{"replicas":3,"paused":null,"x":null}}`,
		},
		{
			reason: "an object without managed fields keeps what is at its top and below spec",
			live:   `{"metadata":{"labels":{"a":"1"}},"spec":{"clusterIP":"10.0.0.1","selector":{"a":"1"},"ports":[1]},"secrets":[1],"data":{"a":"1"}}`,
			wanted: `{"metadata":{"labels":{"b":"1"}},"spec":{"selector":{"b":"1"},"ports":[2]},"data":{"b":"1"}}`,
			want:   `{"metadata":{"labels":{"a":"1","b":"1"}},"spec":{"clusterIP":"10.0.0.1","selector":{"b":"1"},"ports":[2]},"secrets":[1],"data":{"b":"1"}}`,
		},
		{
			reason: "a value of another type is replaced",
			live:   `{"spec":{"a":{"b":1},"c":[1],"d":1}}`, wanted: `{"spec":{"a":[1],"c":1,"d":{"e":1}}}`,
			mine: `{"f:spec":{"f:a":{"f:b":{}},"f:c":{},"f:d":{}}}`,
			want: `{"spec":{"a":[1],"c":1,"d":{"e":1}}}`,
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			live, wanted := object(t, tt.live), object(t, tt.wanted)
			got := merge.Objects(live, wanted, merge.Owned{Mine: fields(t, tt.mine), Others: fields(t, tt.others)})
			if diff := cmp.Diff(object(t, tt.want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(object(t, tt.live), live) + cmp.Diff(object(t, tt.wanted), wanted); diff != "" {
				t.Errorf("what was given is changed:\n%s", diff)
			}
		})
	}
}

func TestSame(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1}`, `{"a":1}`, true},
		{`{"a":1,"b":null}`, `{"a":1}`, true},
		{`{"a":[{"b":null}]}`, `{"a":[{}]}`, true},
		{`{"a":1}`, `{"a":2}`, false},
		{`{"a":[]}`, `{}`, false},
	} {
		if got := merge.Same(object(t, tt.a), object(t, tt.b)); got != tt.want {
			t.Errorf("%s and %s: %v", tt.a, tt.b, got)
		}
	}
}

// FuzzObjects writes a manifest over an object in which an earlier manifest and another manager set fields at
// random. The result has the fields of the manifest and of the other manager, and no others. A second write
// changes nothing.
func FuzzObjects(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		before, theirs, next := part(rnd), part(rnd), part(rnd)
		live := written(written(map[string]int{}, before), theirs)
		owned := merge.Owned{Mine: fieldpath.NewSet(), Others: fieldpath.NewSet()}
		for key := range before {
			if _, over := theirs[key]; !over {
				insert(owned.Mine, key)
			}
		}
		for key := range theirs {
			insert(owned.Others, key)
		}
		got := merge.Objects(shape(live), shape(next), owned)
		want := written(theirs, next)
		if diff := cmp.Diff(flat(shape(want)), flat(got)); diff != "" {
			t.Fatalf("before %v, theirs %v, next %v (-want +got):\n%s", before, theirs, next, diff)
		}
		for key := range next {
			insert(owned.Mine, key)
		}
		if again := merge.Objects(got, shape(next), owned); !merge.Same(got, again) {
			t.Fatalf("a second time:\n%s", cmp.Diff(got, again))
		}
	})
}

// part returns the values of some of the ten fields and ten list entries that a manager sets.
func part(rnd *rand.Rand) map[string]int {
	out := map[string]int{}
	for i := range 20 {
		if rnd.IntN(3) == 0 {
			out[strconv.Itoa(i)] = rnd.IntN(3)
		}
	}
	return out
}

func written(under, over map[string]int) map[string]int {
	out := map[string]int{}
	maps.Copy(out, under)
	maps.Copy(out, over)
	return out
}

func isEntry(key string) bool { return len(key) == 2 }

func insert(set *fieldpath.Set, key string) {
	if isEntry(key) {
		set.Insert(fieldpath.MakePathOrDie("spec", "list", fieldpath.KeyByFields("name", key)))
		set.Insert(fieldpath.MakePathOrDie("spec", "list", fieldpath.KeyByFields("name", key), "value"))
		return
	}
	set.Insert(fieldpath.MakePathOrDie("spec", "map", key))
}

// shape returns values as an object.
func shape(values map[string]int) map[string]any {
	fields, entries := map[string]any{}, []any{}
	for i := range 20 {
		key := strconv.Itoa(i)
		value, has := values[key]
		switch {
		case !has:
		case isEntry(key):
			entries = append(entries, map[string]any{"name": key, "value": int64(value)})
		default:
			fields[key] = int64(value)
		}
	}
	return map[string]any{"spec": map[string]any{"map": fields, "list": entries}}
}

// flat reads the values of an object, whatever the order of its list.
func flat(object map[string]any) map[string]any {
	spec, _ := object["spec"].(map[string]any)
	out := map[string]any{}
	fields, _ := spec["map"].(map[string]any)
	maps.Copy(out, fields)
	entries, _ := spec["list"].([]any)
	for _, e := range entries {
		if entry, ok := e.(map[string]any); ok {
			name, _ := entry["name"].(string)
			out[name] = entry["value"]
		}
	}
	return out
}
