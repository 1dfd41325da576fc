// Command health reads one object as JSON from standard input. It prints the health that Argo CD and
// kstatus (of Flux and others) compute for it, as one JSON object. An argument names a file with a script to use instead of
// Argo CD's own.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	customizations "github.com/argoproj/argo-cd/v3/resource_customizations"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// Health is the output.
type Health struct {
	// ArgoCD is the status that Argo CD's script computes. It is empty if Argo CD has no script for the kind.
	ArgoCD        string `json:"argocd"`
	ArgoCDMessage string `json:"argocdMessage,omitempty"`
	// Kstatus is Current, InProgress, Failed and so on.
	Kstatus        string `json:"kstatus"`
	KstatusMessage string `json:"kstatusMessage,omitempty"`
}

func main() {
	if err := run(os.Stdin, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "health:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, scripts []string) error {
	u := &unstructured.Unstructured{}
	text, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("reading standard input: %w", err)
	}
	if err := u.UnmarshalJSON(text); err != nil {
		return fmt.Errorf("reading the object: %w", err)
	}
	result, err := status.Compute(u)
	if err != nil {
		return fmt.Errorf("computing kstatus: %w", err)
	}
	h := Health{Kstatus: string(result.Status), KstatusMessage: result.Message}
	if h.ArgoCD, h.ArgoCDMessage, err = argocd(u, scripts); err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(h); err != nil {
		return fmt.Errorf("printing the health: %w", err)
	}
	return nil
}

// argocd runs the first of the given scripts for an object, or Argo CD's own script for its kind.
func argocd(u *unstructured.Unstructured, scripts []string) (health, message string, err error) {
	gvk := u.GroupVersionKind()
	read, name := customizations.Embedded.ReadFile, gvk.Group+"/"+gvk.Kind+"/health.lua"
	if len(scripts) > 0 {
		read, name = os.ReadFile, scripts[0]
	}
	script, err := read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("reading the script for %s: %w", gvk.Kind, err)
	}
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", value(state, u.Object))
	if err := state.DoString(string(script)); err != nil {
		return "", "", fmt.Errorf("running the script for %s: %w", gvk.Kind, err)
	}
	table, is := state.Get(-1).(*lua.LTable)
	if !is {
		return "", "", fmt.Errorf("the script for %s returns %s, want a table", gvk.Kind, state.Get(-1).Type())
	}
	return table.RawGetString("status").String(), table.RawGetString("message").String(), nil
}

// value converts a JSON value.
func value(state *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, item := range v {
			table.RawSetString(key, value(state, item))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, item := range v {
			table.Append(value(state, item))
		}
		return table
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case float64:
		return lua.LNumber(v)
	case int64:
		return lua.LNumber(v)
	default:
		return lua.LNil
	}
}
