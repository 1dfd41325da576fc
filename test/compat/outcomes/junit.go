package main

import (
	"encoding/xml"
	"fmt"
	"os"

	"github.com/chandlery/chandlery/test/compat/rules"
)

// junitSuite is a suite of cases in JUnit's format.
type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

// junitCase is a case with its output.
type junitCase struct {
	ClassName string    `xml:"classname,attr"`
	Name      string    `xml:"name,attr"`
	Failure   *struct{} `xml:"failure"`
	Skipped   *struct{} `xml:"skipped"`
	Output    string    `xml:"system-out"`
}

// clientSuite returns the cases with unmodified clients that have a result. Gotestsum's file lacks their output unless
// they fail.
func clientSuite(seen results) junitSuite {
	suite := junitSuite{Name: "unmodified clients"}
	for _, r := range allRules() {
		outcome := seen.outcomes[r.ID]
		if r.ID[:1] != clientGroup || outcome == "" {
			continue
		}
		one := junitCase{ClassName: suite.Name, Name: r.ID, Output: r.Given + "\n" + text(seen.outputs[r.ID])}
		switch outcome {
		case rules.Failed:
			one.Failure = &struct{}{}
			suite.Failures++
		case rules.Skipped:
			one.Skipped = &struct{}{}
			suite.Skipped++
		case rules.Passed:
		}
		suite.Tests++
		suite.Cases = append(suite.Cases, one)
	}
	return suite
}

// writeClients writes the cases with unmodified clients to a file.
func writeClients(name string, seen results) error {
	content, err := xml.MarshalIndent(clientSuite(seen), "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the transcripts of clients: %w", err)
	}
	if err := os.WriteFile(name, append([]byte(xml.Header), content...), 0o600); err != nil {
		return fmt.Errorf("writing the transcripts of clients: %w", err)
	}
	return nil
}
