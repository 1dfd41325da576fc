package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/chandlery/chandlery/bundles"
)

// longestAnswer is the number of lines of an answer that the demo prints.
const longestAnswer = 14

// showCatalog queries the registry as a user does, and prints the questions and the answers.
func (e *environment) showCatalog(ctx context.Context) error {
	e.titlef("The catalog answers queries")
	pkg := e.packages[0]
	for _, question := range [][]string{{"packages"}, {"channels", pkg}, {"bundles", pkg}} {
		if err := e.query(ctx, question...); err != nil {
			return err
		}
	}
	return e.showGraph(ctx)
}

// showGraph prints the upgrade graph of the first package.
func (e *environment) showGraph(ctx context.Context) error {
	return e.query(ctx, "graph", e.packages[0])
}

// query runs "registry query" and prints the command and its answer.
func (e *environment) query(ctx context.Context, question ...string) error {
	limited, cancel := context.WithTimeoutCause(ctx, e.timeout, &lateError{"the registry answers", e.timeout})
	defer cancel()
	cmd := exec.CommandContext(limited, filepath.Join(e.processes.bin, "registry"), append([]string{"query", e.registry}, question...)...)
	var answer, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &answer, &problem
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(limited); cause != nil {
			return cause
		}
		return fmt.Errorf("querying the registry for %s: %w\n%s", strings.Join(question, " "), err, problem.String())
	}
	e.print(strings.Join(quoted("registry query "+e.registry+" "+strings.Join(question, " "), answer.String()), "\n"))
	return nil
}

// quoted returns an indented command with the first lines of its answer.
func quoted(command, answer string) []string {
	lines := strings.Split(strings.TrimRight(answer, "\n"), "\n")
	if rest := len(lines) - longestAnswer; rest > 0 {
		lines = append(lines[:longestAnswer], "… ("+bundles.Count(rest, "line")+" left out)")
	}
	indented := make([]string, 0, len(lines)+1)
	indented = append(indented, "\n  $ "+command)
	for _, line := range lines {
		indented = append(indented, "  "+strings.TrimRight(line, " "))
	}
	return indented
}
