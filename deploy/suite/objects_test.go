package suite_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/chandlery/chandlery/test/controlplane"
)

// objects are the applied objects by kind, namespace and name.
type objects map[string]*unstructured.Unstructured

// renderings are the objects that helm and kubectl have rendered, by what was rendered. Many tests need the same ones.
var renderings = map[string]objects{}

// renderOnce renders objects if no test has rendered them yet, and returns a copy of them.
func renderOnce(what string, render func() objects) objects {
	if renderings[what] == nil {
		renderings[what] = render()
	}
	all := objects{}
	for key, u := range renderings[what] {
		all[key] = u.DeepCopy()
	}
	return all
}

// kustomized renders a folder of this repository as "kubectl apply -k" does.
func kustomized(t *testing.T, dir string) objects {
	t.Helper()
	return renderOnce("kustomize "+dir, func() objects {
		return decode(t, output(t, controlplane.Get(t).Kubectl(), "kustomize", dir))
	})
}

// everything renders the prerequisites and the product.
func everything(t *testing.T) objects {
	t.Helper()
	all := kustomized(t, "..")
	maps.Copy(all, kustomized(t, "../prerequisites"))
	for _, file := range append(defaults(t), "../prerequisites/namespace.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, decode(t, text))
	}
	return all
}

// defaults returns the files with the defaults of a cluster.
func defaults(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../prerequisites/defaults/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v: %v", files, err)
	}
	return files
}

// decode reads objects from a stream of YAML.
func decode(t *testing.T, text []byte) objects {
	t.Helper()
	all := objects{}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(u.Object) == 0 {
			continue
		}
		key := fmt.Sprintf("%s %s/%s", u.GetKind(), u.GetNamespace(), u.GetName())
		if all[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		all[key] = u
	}
}

// as converts one of the objects to its type.
func as[T any](t *testing.T, all objects, key string) *T {
	t.Helper()
	u := all[key]
	if u == nil {
		t.Fatalf("there is no %s", key)
	}
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, typed, true); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return typed
}

// output runs a program and returns what it prints. The log of the test contains the transcript.
func output(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, problems.String())
	}
	t.Logf("$ %s %s\n%s%s", name, strings.Join(args, " "), out, problems.String())
	return out
}
