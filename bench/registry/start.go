package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Targets for starting.
const (
	coldPeerTarget = 10
	coldTextTarget = 2
	// warmTarget is in seconds.
	warmTarget = 0.050
)

// starts are the figures of a server's starts.
type starts struct {
	wall, cpu sample
	// peak and private are the largest of any start, in bytes.
	peak, private float64
}

// time starts and stops a server and adds the figures.
func (b *bench) time(ctx context.Context, l launch, into *starts) error {
	s, began, err := b.spawn(ctx, l)
	if err != nil {
		return err
	}
	w := watch(ctx, s.PID())
	err = s.awaitServing(ctx, began)
	most := w.stop()
	if err = errors.Join(err, s.stop()); err != nil {
		return fmt.Errorf("starting %s: %w", l.name, err)
	}
	into.wall, into.cpu = append(into.wall, s.wall), append(into.cpu, s.cpu)
	into.peak, into.private = max(into.peak, most.peak), max(into.private, most.private)
	return nil
}

// cells returns the figures as cells of a table.
func (s starts) cells() []string { return []string{s.wall.text(seconds), s.cpu.text(seconds)} }

// coldSection measures starts without an index or a cache.
type coldSection struct{ *bench }

// run measures starts without an index or a cache.
func (b coldSection) run(ctx context.Context) error {
	inYAML, err := derivedCatalogs(b).asYAML(ctx)
	if err != nil {
		return err
	}
	table := b.report.add("Cold start, directory only", "From the start of the process to health SERVING.",
		"Catalog", "registry", "CPU", "opm", "CPU", "times as fast", "CPU saved")
	for i, form := range []struct{ name, dir string }{
		{"JSON", b.catalog}, {"the same as YAML", inYAML}, {"with manifests, JSON", b.objects},
	} {
		b.sayf("cold start, %s", form.name)
		ours, theirs, err := b.compare(ctx, form.dir)
		if err != nil {
			return err
		}
		ratio := theirs.wall.median() / ours.wall.median()
		table.row(append(append([]string{form.name}, append(ours.cells(), theirs.cells()...)...),
			times(ratio), times(theirs.cpu.median()/ours.cpu.median()))...)
		b.report.atLeast("cold start, "+form.name+": times as fast as opm", ratio, coldPeerTarget, times)
		if i > 0 {
			continue
		}
		if err := b.compareWithText(ctx, ours); err != nil {
			return err
		}
	}
	return nil
}

// compare starts both servers in turns. The first start of the registry loads the files into
// the page cache and does not count.
func (b coldSection) compare(ctx context.Context, dir string) (ours, theirs starts, err error) {
	if err := b.time(ctx, b.registryLaunch(dir), &starts{}); err != nil {
		return ours, theirs, err
	}
	for round := range max(b.startRounds, b.peerRounds) {
		if round < b.startRounds {
			err = b.time(ctx, b.registryLaunch(dir), &ours)
		}
		if err == nil && round < b.peerRounds {
			err = b.time(ctx, b.opmLaunch(dir), &theirs)
		}
		if err != nil {
			return ours, theirs, err
		}
	}
	return ours, theirs, nil
}

// compareWithText compares a cold start with only reading the text.
func (b coldSection) compareWithText(ctx context.Context, ours starts) error {
	table := b.report.add("The text alone", "Reading the same files and finding their tokens, on all cores; "+
		"nothing is decoded or kept.", "By", "Time", "CPU", "cold start over it")
	for i, way := range textWays() {
		b.sayf("reading the text: %s", way.name)
		var wall, cpu sample
		rounds := b.startRounds
		if i > 0 {
			rounds = 1 // a rough figure suffices
		}
		for range rounds {
			took, computed, err := timeText(ctx, b.catalog, way.read)
			if err != nil {
				return err
			}
			wall, cpu = append(wall, took), append(cpu, computed)
		}
		ratio := ours.wall.median() / wall.median()
		table.row(way.name, wall.text(seconds), cpu.text(seconds), times(ratio))
		if i == 0 {
			b.report.atMost("cold start over reading and tokenising the text", ratio, coldTextTarget, times)
		}
	}
	return nil
}

// peerCaches fills caches with opm.
type peerCaches struct{ *bench }

// standard returns a cache directory that opm has filled in its default form.
func (b peerCaches) standard(ctx context.Context) (string, error) {
	return b.fill(ctx, b.catalog, "opm-cache", false)
}

// fill fills a cache directory with opm, once. opm uses the form that it finds in the
// directory. It recognizes the JSON form by an empty folder and a wrong digest.
func (b peerCaches) fill(ctx context.Context, catalog, name string, asJSON bool) (string, error) {
	dir := filepath.Join(b.dir, name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	b.sayf("filling %s", name)
	temporary := dir + ".new"
	err := os.MkdirAll(temporary, 0o755)
	if asJSON {
		err = errors.Join(err, os.MkdirAll(filepath.Join(temporary, "cache"), 0o755),
			os.WriteFile(filepath.Join(temporary, "digest"), []byte("none"), 0o644))
	}
	if err != nil {
		return "", fmt.Errorf("making a cache for opm: %w", err)
	}
	if err := command(ctx, b.programs.opm, "serve", catalog, "--cache-dir="+temporary, "--cache-only",
		"--cache-enforce-integrity=false", "--termination-log=", "--pprof-addr="); err != nil {
		return "", err
	}
	if err := os.Rename(temporary, dir); err != nil {
		return "", fmt.Errorf("making a cache for opm: %w", err)
	}
	return dir, nil
}

// warmCase is a kind of start with an index or a cache.
type warmCase struct {
	name   string
	launch launch
	rounds int
	// limit is set if the target applies.
	limit bool
}

// warmSection measures starts with an index or a cache.
type warmSection struct{ *bench }

// run measures starts with an index or cache present.
func (b warmSection) run(ctx context.Context) error {
	table := b.report.add("Warm start", "Work is the CPU time of all threads until health SERVING.",
		"Server", "From", "Time", "Work")
	large, err := derivedCatalogs(b).multiplied(ctx)
	if err != nil {
		return err
	}
	cases, err := b.cases(ctx, large)
	if err != nil {
		return err
	}
	for _, c := range cases {
		b.sayf("warm start, %s, %s", c.launch.name, c.name)
		var s starts
		for round := -1; round < c.rounds; round++ {
			into := &s
			if round < 0 {
				into = &starts{} // fills the cache of the registry and the page cache
			}
			if err := b.time(ctx, c.launch, into); err != nil {
				b.sayf("%v", err)
				break
			}
		}
		table.row(append([]string{c.launch.name, c.name}, s.cells()...)...)
		if c.limit {
			b.report.atMost("warm start, "+c.name+": work", s.cpu.median(), warmTarget, seconds)
		}
	}
	return nil
}

func (b warmSection) cases(ctx context.Context, large string) ([]warmCase, error) {
	times := fmt.Sprintf("%d times the catalog", b.copies)
	cases := []warmCase{
		{"directory and its cache", b.registryLaunch(b.catalog, "--cache-dir="+filepath.Join(b.dir, "cache")), b.startRounds, true},
		{"directory and its cache, " + times, b.registryLaunch(large, "--cache-dir="+filepath.Join(b.dir, "cache-large")), b.startRounds, true},
	}
	if b.index != "" {
		cases = append(cases, warmCase{"index file", b.registryLaunch(b.index), b.startRounds, true})
		file, err := b.buildIndex(ctx, large, "catalog-large.index")
		if err != nil {
			return nil, err
		}
		cases = append(cases, warmCase{"index file, " + times, b.registryLaunch(file), b.startRounds, true})
	}
	peers := []struct {
		name, from, catalog string
		asJSON              bool
	}{{"opm-cache", "directory and pogreb cache", b.catalog, false}, {"opm-cache-json", "directory and JSON cache", b.catalog, true}}
	if b.peerTenfold {
		peers = append(peers, peers[0])
		peers[2].name, peers[2].catalog, peers[2].from = "opm-cache-large", large, peers[0].from+", "+times
	}
	if b.peerRounds == 0 {
		return cases, nil
	}
	for _, p := range peers {
		cache, err := peerCaches(b).fill(ctx, p.catalog, p.name, p.asJSON)
		if err != nil {
			return nil, err
		}
		cases = append(cases, warmCase{p.from, b.opmLaunch(p.catalog, "--cache-dir="+cache), b.peerRounds, false})
	}
	return cases, nil
}

// sizeSection compares the sizes of files.
type sizeSection struct{ *bench }

// run compares the sizes on disk.
func (b sizeSection) run(ctx context.Context) error {
	table := b.report.add("Size on disk", "", "What", "Bytes", "over compact JSON")
	compact, err := compactSize(ctx, b.catalog)
	if err != nil {
		return err
	}
	text, _, err := treeSize(b.catalog)
	if err != nil {
		return err
	}
	cache, err := peerCaches(b).standard(ctx)
	if err != nil {
		return err
	}
	theirs, err := diskSize(cache)
	if err != nil {
		return err
	}
	table.row("catalog as it is", bytesText(float64(text)), times(float64(text)/compact))
	table.row("catalog as compact JSON", bytesText(compact), "1")
	table.row("opm's cache (pogreb)", bytesText(theirs), times(theirs/compact))
	if b.index == "" {
		return nil
	}
	info, err := os.Stat(b.index)
	if err != nil {
		return fmt.Errorf("measuring the index: %w", err)
	}
	ratio := float64(info.Size()) / compact
	table.row("index file", bytesText(float64(info.Size())), times(ratio))
	b.report.atMost("index file over the catalog as compact JSON", ratio, 1, times)
	return nil
}
