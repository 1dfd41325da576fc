package main

import (
	"bytes"
	"strings"
	"testing"
)

// runRBAC returns what the command rbac prints.
func runRBAC(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := newCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{"rbac", "--bundle-kind=shop.example/Widget"}, args...))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// TestRBACSubject checks that the binding names the account of the flags, and no account of the environment: the
// variable of --namespace is also the one of other commands.
func TestRBACSubject(t *testing.T) {
	t.Setenv("SUPERVISOR_NAMESPACE", "other")
	t.Setenv("SUPERVISOR_SERVICE_ACCOUNT", "other")
	for want, args := range map[string][]string{
		"name: chandlery-supervisor\n  namespace: chandlery-system\n": nil,
		"name: manager\n  namespace: system\n":                        {"--namespace=system", "--service-account=manager"},
	} {
		out, err := runRBAC(t, args...)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%v: error %v, output:\n%s", args, err, out)
		}
	}
}

// TestRBACRefusesAccounts checks the errors for names that the API server would refuse.
func TestRBACRefusesAccounts(t *testing.T) {
	for _, arg := range []string{"--namespace=", "--namespace=Foo_Bar", "--namespace=a.b", "--service-account=", "--service-account=x/y"} {
		flag, _, _ := strings.Cut(arg, "=")
		out, err := runRBAC(t, arg)
		if err == nil || out != "" || !strings.Contains(err.Error(), flag) || !strings.Contains(err.Error(), "set it to the ") {
			t.Errorf("%s: error %v, output:\n%s", arg, err, out)
		}
	}
}
