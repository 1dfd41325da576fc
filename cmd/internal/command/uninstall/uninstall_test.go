package uninstall_test

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/command/uninstall"
)

// TestOperatorIsNamed covers users who take the command for the one that removes an operator.
func TestOperatorIsNamed(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		"lamp":              "to remove the operator of a Subscription: kubectl chandlery remove lamp",
		"lamp -n shop":      "to remove the operator of a Subscription: kubectl chandlery remove SUBSCRIPTION -n NAMESPACE",
		"--namespace=shop":  "to remove the operator of a Subscription: kubectl chandlery remove SUBSCRIPTION -n NAMESPACE",
		"--everythink":      "unknown flag: --everythink",
		"--timeout=forever": "invalid argument",
	} {
		root := &cobra.Command{Use: "kubectl-chandlery", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(uninstall.New("kubectl chandlery", "test"))
		root.SetOut(io.Discard)
		root.SetArgs(append([]string{"uninstall"}, strings.Fields(arguments)...))
		err := root.Execute()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", arguments, err, want)
		}
		if named := err != nil && strings.Contains(err.Error(), "to remove the operator"); named != strings.HasPrefix(want, "to remove") {
			t.Errorf("%s: error %v", arguments, err)
		}
	}
}
