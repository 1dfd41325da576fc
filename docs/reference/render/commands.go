package main

import (
	"context"
	"fmt"
)

// program is a program that has a page.
type program struct {
	// name is the name of the program's folder in cmd/.
	name string
	// called is the command that a user types.
	called string
	// about is the purpose of the page.
	about string
}

// programs are those that users run.
func programs() []program {
	return []program{
		{name: "registry", called: "registry", about: "serves and inspects catalogs"},
		{name: "catalog", called: "catalog", about: "creates catalogs and their images. Its commands `validate` and `diff` are those of the program `registry`,\n" +
			"without `--allow-empty` and `--cache-dir`. Their SOURCE is a directory or an image"},
		{name: "supervisor", called: "supervisor", about: "runs in the cluster. It also has the commands of kubectl chandlery"},
		{name: "kubectl-chandlery", called: "kubectl chandlery", about: "is a plugin of kubectl (executable `kubectl-chandlery`)"},
	}
}

// page returns the file name of the page.
func (p program) page() string { return "commands-" + p.name + ".md" }

// reference returns the program's own description of its commands and flags.
func (p program) reference(ctx context.Context) (string, error) {
	out, err := output(ctx, "run", "./cmd/"+p.name, "reference")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("# Commands of %s\n\n%#q %s. [Commands](commands.md) explains flags, variables and exit codes.\n\n%s",
		p.called, p.called, p.about, out), nil
}
