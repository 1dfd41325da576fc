package operatorhub_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
)

// TestKubectlOperator runs kubectl-operator v0.6.0 for a package of OperatorHub.io.
func TestKubectlOperator(t *testing.T) {
	s := newScene(t)
	namespace := s.bed.Namespace(t)
	plugin := []string{"PATH=" + filepath.Dir(compattest.Client(t, compattest.ProgramOperator)) + ":" + os.Getenv("PATH")}
	operator := func(args string, want ...string) {
		t.Helper()
		out := s.kubectl(plugin, append([]string{"operator", "-n", namespace}, strings.Fields(args)...)...)
		// Columns have different widths.
		line := strings.Join(strings.Fields(out), " ")
		for _, text := range want {
			if !strings.Contains(line, text) {
				t.Errorf("kubectl operator %s does not print %q", args, text)
			}
		}
	}
	// The catalog has just been created if this is the first test.
	s.published(namespace, compass)
	operator("catalog list -A", "operatorhubio-catalog olm Community Operators grpc OperatorHub.io")
	operator("list-available", "buoy Community Operators alpha buoy.v0.3.0", "compass Community Operators stable compass.v2.2.0",
		"lantern Community Operators stable lantern.v1.2.0", "sextant Community Operators alpha sextant.v1.0.0")
	operator("describe compass", "Compass 2.2.0 (by Example)", "stable (default) (shown)")

	operator("install compass --version 2.0.0 --create-operator-group", "compass.v2.0.0")
	s.eventually(func() string {
		sub := &operatorsv1alpha1.Subscription{}
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: compass}, sub); err != nil {
			return err.Error()
		}
		if sub.Status.InstalledCSV != "compass.v2.0.0" || sub.Status.CurrentCSV != "compass.v2.2.0" {
			return fmt.Sprintf("no update waits: %+v", sub.Status)
		}
		return ""
	})
	operator("list", "compass.v2.0.0")
	operator("upgrade compass", "compass.v2.2.0")
	s.installed(namespace, compass, "compass.v2.2.0")

	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ship.example.com/v1alpha1", "kind": "Compass", "metadata": map[string]any{"namespace": namespace, "name": "bridge"},
	}}
	must(t, s.Create(t.Context(), o))
	// The tool reads the operands of the first version among the components. The former one is listed until its deletion
	// has been seen.
	s.eventually(func() string {
		components := &operatorsv1.Operator{}
		if err := s.Get(t.Context(), client.ObjectKey{Name: compass + "." + namespace}, components); err != nil {
			return err.Error()
		}
		former := func(r operatorsv1.RichReference) bool { return r.ObjectReference != nil && r.Name == "compass.v2.0.0" }
		if c := components.Status.Components; c == nil || slices.ContainsFunc(c.Refs, former) {
			return fmt.Sprintf("the components are %+v", c)
		}
		return ""
	})
	operator("list-operands compass", "bridge")
	operator("uninstall compass --delete-all")
	s.nothingLeft(namespace)
}
