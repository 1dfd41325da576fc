package clients

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBreaking changes the contract and compares it with the last release, as `make check` does.
func TestBreaking(t *testing.T) {
	for name, test := range map[string]struct {
		reason   string
		old, new string
		want     string
	}{
		"None":    {reason: "the contract as it is"},
		"Comment": {reason: "of no matter to clients", old: "message Channel {", new: "// It is new.\nmessage Channel {"},
		"Added":   {reason: "old clients pass over it", old: "message Channel {", new: "message Channel {\n  string added = 99;"},
		"Number":  {reason: "old clients would read another field", old: "string csvName = 2;", new: "string csvName = 7;", want: `field "2" with name "csvName"`},
		"Type":    {reason: "old clients could not read it", old: "string csvName = 2;", new: "int64 csvName = 2;", want: `Field "2" with name "csvName" on message "Channel" changed type`},
		"Name":    {reason: "JSON has the name", old: "string csvName = 2;", new: "string csv_name_2 = 2;", want: `changed option "json_name" from "csvName"`},
		"Call":    {reason: "old clients call it", old: "rpc GetPackage(", new: "rpc FetchPackage(", want: `RPC "GetPackage"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			copyFiles(t, source(t, "."), dir, "buf.yaml", "proto/contract.txtpb")
			if err := os.CopyFS(filepath.Join(dir, "proto", "chandlery"), os.DirFS(source(t, "proto/chandlery"))); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(source(t, "proto/registry.proto"))
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(text), test.old, test.new, 1)
			if test.old != "" && changed == string(text) {
				t.Fatalf("registry.proto has no %q", test.old)
			}
			if err := os.WriteFile(filepath.Join(dir, "proto", "registry.proto"), []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), tool(t, "buf"), "breaking", "proto", "--against", "proto/contract.txtpb")
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if _, failed := errors.AsType[*exec.ExitError](err); failed != (test.want != "") || !strings.Contains(string(out), test.want) {
				t.Errorf("%s: %v\n%s", test.reason, err, out)
			}
		})
	}
}
