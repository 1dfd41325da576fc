package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// The targets for 300 namespaces and 15 operators.
const (
	targetOn  = 300 << 20
	targetOff = 150 << 20
)

func mebi(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20)) }

// line returns a summary of a stage for the progress output.
func (m stage) line() string {
	return fmt.Sprintf("%s: as asked after %s, %d writes; %s at rest, %s at most; %d writes while nothing happened",
		m.name, m.took.Round(100*time.Millisecond), m.wrote, mebi(m.memory), mebi(m.peak), m.idle)
}

// markdown returns the report.
func (f *figures) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d namespaces, %d operators for all of them, %d KiB each; %d cores; %s; one supervisor.\n\n",
		f.o.namespaces, f.o.operators, f.o.size, runtime.NumCPU(), runtime.Version())
	fmt.Fprintf(&b, "Limits while idle: %s with copies, %s without, and no writes.\n\n", mebi(targetOn), mebi(targetOff))
	fmt.Fprintf(&b, "| Stage | As asked after | Writes | Memory while idle | Peak | Writes in %s while idle |\n|---|---|---|---|---|---|\n", f.o.rest)
	for _, m := range f.stages {
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s | %d |\n",
			m.name, m.took.Round(100*time.Millisecond), m.wrote, mebi(m.memory), mebi(m.peak), m.idle)
	}
	b.WriteString("\nMemory is private (RssAnon), the peak resident (VmHWM).\n")
	return b.String()
}
