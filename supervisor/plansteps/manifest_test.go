package plansteps

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

func TestReferenceAndResolve(t *testing.T) {
	large := strings.Replace(configMapManifest, `"b"`, `"`+strings.Repeat("x", 4000)+`"`, 1)
	b := lamp(csvManifest, crdManifest, large)
	steps, whole := mustSteps(t, b), mustSteps(t, b)
	total := 0
	for _, s := range steps {
		total += len(s.Resource.Manifest)
	}
	if err := ReferenceManifests(steps, []Bundle{b}, total); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, steps); diff != "" {
		t.Fatalf("steps that fit were changed:\n%s", diff)
	}
	if err := ReferenceManifests(steps, []Bundle{b}, total-1); err != nil {
		t.Fatal(err)
	}
	replaced := 0
	for i, s := range steps {
		u, ref, err := Manifest(s)
		if err != nil {
			t.Fatal(err)
		}
		if ref == nil {
			if diff := cmp.Diff(whole[i], s); diff != "" {
				t.Errorf("step %d was changed:\n%s", i, diff)
			}
			continue
		}
		replaced++
		if u != nil || s.Resource.Name != "settings" {
			t.Errorf("step %s %s was replaced, want only the largest", s.Resource.Kind, s.Resource.Name)
		}
		// The plan replaces the same version, whatever a later resolution returns.
		served := b
		served.Replaces = "something.else"
		resolved, err := Resolve(*ref, s, "home", served, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, _, err := Manifest(whole[i])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Object, resolved.Object); diff != "" {
			t.Errorf("resolving gives something else (-want +got):\n%s", diff)
		}
	}
	if replaced != 1 {
		t.Errorf("%d manifests were replaced, want 1", replaced)
	}
}

func TestResolveRefusesChangedContent(t *testing.T) {
	b := lamp(csvManifest, configMapManifest)
	steps := mustSteps(t, b)
	if err := ReferenceManifests(steps, []Bundle{b}, 0); err != nil {
		t.Fatal(err)
	}
	step := steps[len(steps)-1]
	_, ref, err := Manifest(step)
	if err != nil || ref == nil {
		t.Fatalf("reference %v, error %v", ref, err)
	}
	for _, tt := range []struct {
		reason string
		served Bundle
		want   error
	}{
		{reason: "the object is another one", served: lamp(csvManifest, strings.Replace(configMapManifest, `"b"`, `"c"`, 1)), want: ErrContentChanged},
		{reason: "the object is gone", served: lamp(csvManifest), want: ErrContentChanged},
		{reason: "the manifests are gone", served: lamp(), want: ErrNoInlineManifests},
	} {
		_, err := Resolve(*ref, step, "home", tt.served, nil)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.reason, err, tt.want)
		} else if !strings.Contains(err.Error(), "lamp.v1.0.0") {
			t.Errorf("%s: error %q does not name the bundle", tt.reason, err)
		}
	}
}

func TestManifestErrors(t *testing.T) {
	for _, text := range []string{"", "kind: [x", "some text", `{"kind":"BundleObject","package":7}`} {
		step := &operatorsv1alpha1.Step{Resource: operatorsv1alpha1.StepResource{Kind: "ConfigMap", Name: "settings", Manifest: text}}
		_, _, err := Manifest(step)
		if err == nil || !strings.Contains(err.Error(), "step ConfigMap settings") {
			t.Errorf("Manifest(%q): error %v does not name the step", text, err)
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add(csvManifest)
	f.Add(`{"kind":"BundleObject","package":"lamp","sha256":"00"}`)
	f.Add("null")
	f.Fuzz(func(t *testing.T, text string) {
		step := &operatorsv1alpha1.Step{Resource: operatorsv1alpha1.StepResource{Manifest: text}}
		u, ref, err := Manifest(step)
		if err == nil && (u == nil) == (ref == nil) {
			t.Errorf("object %v and reference %v", u, ref)
		}
	})
}
