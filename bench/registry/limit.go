package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/chandlery/chandlery/bundles/fbc"
)

const (
	// limitBytes is the memory limit of catalog pods.
	limitBytes = 50 * mib
	// limitPatience is how long a start within the limit may take.
	limitPatience = 3 * time.Minute
	// limitSlowdown is the factor by which anything may be slower within the limit. It is the
	// scatter of the figures.
	limitSlowdown = 1.25
)

// limitSection measures servers with limited memory.
type limitSection struct{ *bench }

// run measures a cold start and queries within a container's memory limit.
func (b limitSection) run(ctx context.Context) error {
	group, err := newGroup(limitBytes)
	if err != nil {
		b.sayf("no memory limit: %v", err)
		b.report.add("Within "+bytesText(limitBytes), "Not measured: this process may not create a memory control group ("+err.Error()+").",
			"Server", "Start", "Queries")
		return nil
	}
	defer group.remove() //nolint:errcheck // a group without processes does no harm
	table := b.report.add("Within "+bytesText(limitBytes), "A cold start from the directory and OLM's queries, in a control group that "+
		"counts all memory and pages of files.",
		"Server", "Start, unlimited", "Start, limited", "ratio", "Queries, unlimited", "Queries, limited", "ratio")
	large, err := derivedCatalogs(b).multiplied(ctx)
	if err != nil {
		return err
	}
	for _, c := range []limitCase{
		{"registry", b.catalog, b.registryLaunch(b.catalog), b.startRounds, true},
		{fmt.Sprintf("registry, %d times the catalog", b.copies), large, b.registryLaunch(large), 1, true},
		{"opm", b.catalog, b.opmLaunch(b.catalog), min(b.peerRounds, 1), false},
	} {
		if c.rounds == 0 {
			continue
		}
		f, err := b.compare(ctx, c, group)
		cells := f.cells()
		if err != nil {
			b.sayf("%s within the limit: %v", c.name, err)
			cells[1] = "does not get there"
		}
		table.row(append([]string{c.name}, cells...)...)
		if !c.judged {
			continue
		}
		start, queries := f.limited.over(f.free), f.limitedQueries.over(f.freeQueries)
		if err != nil {
			start, queries = math.Inf(1), math.Inf(1)
		}
		b.report.atMost("cold start within "+bytesText(limitBytes)+" over one without a limit, "+c.name, start, limitSlowdown, times)
		b.report.atMost("queries within "+bytesText(limitBytes)+" over those without a limit, "+c.name, queries, limitSlowdown, times)
	}
	return nil
}

// limitCase is a server to start within the limit.
type limitCase struct {
	name, catalog string
	launch        launch
	rounds        int
	// judged is set if the target applies to the server.
	judged bool
}

// limitFigures are the times with and without the limit.
type limitFigures struct {
	free, limited, freeQueries, limitedQueries sample
}

func (f limitFigures) cells() []string {
	return []string{
		f.free.text(seconds), f.limited.text(seconds), times(f.limited.over(f.free)),
		f.freeQueries.text(seconds), f.limitedQueries.text(seconds), times(f.limitedQueries.over(f.freeQueries)),
	}
}

func (b limitSection) compare(ctx context.Context, c limitCase, g group) (limitFigures, error) {
	var f limitFigures
	limited := c
	limited.launch.patience = limitPatience
	limited.launch.before = g.enter()
	for round := range c.rounds {
		b.sayf("%s with and without the limit, round %d", c.name, round+1)
		if err := b.startAndQuery(ctx, c, &f.free, &f.freeQueries); err != nil {
			return f, err
		}
		if err := b.startAndQuery(ctx, limited, &f.limited, &f.limitedQueries); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (b limitSection) startAndQuery(ctx context.Context, c limitCase, start, query *sample) (err error) {
	if err := evict(c.catalog); err != nil {
		return err
	}
	s, err := b.start(ctx, c.launch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	began := time.Now()
	if err := queryAsOLM(ctx, s.address); err != nil {
		return err
	}
	*start, *query = append(*start, s.wall), append(*query, time.Since(began).Seconds())
	return nil
}

// evict drops the files of a catalog from the page cache, as far as the system permits.
func evict(dir string) error {
	names, err := fbc.Files(os.DirFS(dir))
	if err != nil {
		return fmt.Errorf("listing the catalog: %w", err)
	}
	for _, name := range names {
		if err := evictFile(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("forgetting the content of %s: %w", name, err)
		}
	}
	return nil
}

// group is a control group, by the path of its directory.
type group string

// The directories of control groups in version 1 and version 2.
const (
	oldGroups     = "/sys/fs/cgroup/memory"
	unifiedGroups = "/sys/fs/cgroup"
)

// newGroup creates a group with a memory limit.
func newGroup(limit int64) (group, error) {
	parent, file := oldGroups, "memory.limit_in_bytes"
	if _, err := os.Stat(filepath.Join(oldGroups, file)); err != nil {
		parent, file = unifiedGroups, "memory.max"
	}
	g := group(filepath.Join(parent, fmt.Sprintf("chandlery-bench-%d", os.Getpid())))
	if err := os.Mkdir(string(g), 0o755); err != nil {
		return "", fmt.Errorf("making a control group: %w", err)
	}
	limitFile := filepath.Join(string(g), file)
	if err := os.WriteFile(limitFile, []byte(strconv.FormatInt(limit, 10)), 0o644); err != nil {
		return "", errors.Join(fmt.Errorf("setting the limit of a control group: %w", err), g.remove())
	}
	return g, nil
}

// enter returns the words before a program that start it in the group.
func (g group) enter() []string {
	script := `echo $$ > "$0/cgroup.procs" && exec "$@"`
	return []string{"/bin/sh", "-c", script, string(g)}
}

// remove removes a group without processes.
func (g group) remove() error {
	if !strings.Contains(string(g), "chandlery-bench-") {
		return nil
	}
	return os.Remove(string(g))
}
