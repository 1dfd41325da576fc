package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFlagsThatCannotBeUsed(t *testing.T) {
	for args, want := range map[string]string{
		"":                                "--layout DIR",
		"--layout out extra":              `"extra"`,
		"--push chandlery":                "no host",
		"--push registry.example.com/UP":  "HOST/PREFIX",
		"--layout out --platform x/y/z/w": "linux/amd64",
	} {
		if err := run(t.Context(), strings.Fields(args), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want something with %q", args, err, want)
		}
	}
}

func TestWhereImagesGo(t *testing.T) {
	f := flags{}
	if err := f.parse([]string{"--push", "localhost:5000/team/", "--insecure", "--version", "v1.0.0+dirty"}, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	repositories, err := f.repositories()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range repositories {
		got = append(got, r.Scheme()+"://"+r.Name())
	}
	if diff := cmp.Diff([]string{"http://localhost:5000/team/chandlery/registry", "http://localhost:5000/team/chandlery/supervisor"}, got); diff != "" {
		t.Errorf("repositories (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"v1.0.0_dirty", "latest"}, f.tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}
