// Command outcomes reads files with the results of test/compat, as go test -json prints them, and compares them with the rules. It
// prints a table of the groups, the failed cases, and the transcripts of unmodified clients.
//
// With --olm, it fails if a case has another outcome with OLM than its rule expects. Otherwise, it fails if a case
// failed, if a rule has no case, or if a case has no rule. With --part, a rule may be without a case, but one case must
// have run.
//
// With --clients, it writes the transcripts of unmodified clients to a file, too.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/chandlery/chandlery/test/compat/rules"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "outcomes:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("outcomes", flag.ContinueOnError)
	olm := flags.Bool("olm", false, "the results are of OLM")
	part := flags.Bool("part", false, "only a part of the cases ran")
	clients := flags.String("clients", "", "file for the transcripts of unmodified clients, in JUnit's format")
	if err := flags.Parse(args); err != nil {
		return err //nolint:wrapcheck // names the flag
	}
	seen, err := readFiles(flags.Args())
	if err != nil {
		return err
	}
	problems := append(seen.broken(), rules.Problems(rules.All(), seen.outcomes, *part)...)
	if *olm {
		problems = append(seen.broken(), rules.Unexpected(seen.outcomes)...)
	}
	report(out, seen, *olm)
	if *clients != "" {
		if err := writeClients(*clients, seen); err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("the results differ from the rules:\n  %s", strings.Join(problems, "\n  "))
	}
	return nil
}

// readFiles returns the results in files together.
func readFiles(names []string) (results, error) {
	if len(names) == 0 {
		return results{}, errors.New("want the files with the results")
	}
	var all bytes.Buffer
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return results{}, fmt.Errorf("reading the results: %w", err)
		}
		all.Write(content)
	}
	seen, err := read(&all)
	if err != nil {
		return results{}, fmt.Errorf("reading the results in %s: %w", strings.Join(names, ", "), err)
	}
	return seen, nil
}
