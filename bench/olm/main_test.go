package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/scale"
)

func TestParseSizes(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   []int
		fails  bool
	}{
		"One":      {reason: "One number is one step.", text: "50", want: []int{50}},
		"Rising":   {reason: "Each number is a step.", text: "10,50,200", want: []int{10, 50, 200}},
		"Empty":    {reason: "Without a step there is nothing to measure.", text: "", fails: true},
		"NoNumber": {reason: "A word is no number of namespaces.", text: "10,many", fails: true},
		"Zero":     {reason: "A step has at least one namespace.", text: "0", fails: true},
		"Negative": {reason: "A step has at least one namespace.", text: "-1", fails: true},
		"Equal":    {reason: "The second step would have no namespace.", text: "10,10", fails: true},
		"Falling":  {reason: "Namespaces are added, not removed.", text: "50,10", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseSizes(tc.text)
			if (err != nil) != tc.fails {
				t.Errorf("%s\nparseSizes(%q): want an error: %t, got %v", tc.reason, tc.text, tc.fails, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nparseSizes(%q): -want, +got:\n%s", tc.reason, tc.text, diff)
			}
		})
	}
}

func TestByCount(t *testing.T) {
	get, list, create := scale.Kind{Verb: "get", Resource: "pods"}, scale.Kind{Verb: "list", Resource: "pods"}, scale.Kind{Verb: "create", Resource: "pods"}
	got := byCount(map[scale.Kind]int{get: 2, list: 5, create: 2})
	if diff := cmp.Diff([]scale.Kind{list, create, get}, got); diff != "" {
		t.Errorf("The most frequent kind is first, equal ones are in order.\nbyCount(...): -want, +got:\n%s", diff)
	}
}
