package uninstall_test

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/command/uninstall"
)

// TestUsage covers wrong flags, and users who take the command for the one that removes an operator.
func TestUsage(t *testing.T) {
	t.Parallel()
	const remedy = "uninstall removes the supervisor; to remove the operator of a Subscription: kubectl chandlery remove SUBSCRIPTION -n NAMESPACE"
	for arguments, want := range map[string]string{
		"lamp":                        "uninstall removes the supervisor, and takes no arguments; to remove the operator of a Subscription: kubectl chandlery remove lamp",
		"-n shop":                     "unknown shorthand flag: 'n' in -n; " + remedy,
		"--namespace=shop":            "unknown flag: --namespace; " + remedy,
		"--everythink":                "unknown flag: --everythink",
		"--supervisor-namespace=Home": `--supervisor-namespace is "Home": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
		"--timeout=forever":           `invalid argument "forever" for "--timeout" flag: time: invalid duration "forever"`,
	} {
		root := &cobra.Command{Use: "kubectl-chandlery", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(uninstall.New("kubectl chandlery", "test"))
		root.SetOut(io.Discard)
		root.SetArgs(append([]string{"uninstall"}, strings.Fields(arguments)...))
		err := root.Execute()
		if err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", arguments, err, want)
		}
	}
}
