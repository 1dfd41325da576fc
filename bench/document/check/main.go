// Command check lists the measurements that are older than the measured code.
//
//	go run ./bench/document/check [--release]
//
// Each part of docs/measurements*.md that has a table states the commit of its figures and the
// programs that were measured, in a comment. The part is old if one of the following has changed since:
// a package of one of these programs with its embedded files, apart from tests; go.mod, which names the
// version of Go and of each dependency; or for the supervisor, the manifests that it is installed with.
// With --release, old parts are an error.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/bench/document"
	"github.com/chandlery/chandlery/test/cli"
)

const (
	// reports is the folder of the code that writes reports. It measures nothing.
	reports = "bench/document"
	// modules is the file with the versions of Go and of dependencies. It decides on every figure.
	modules = "go.mod"
	// manifested is the program that works with the permissions in manifests.
	manifested, manifests = "./cmd/supervisor", "deploy/rbac"
)

var errOld = errors.New("figures are older than the code that they measure: measure again, or remove them")

func main() { cli.Run("measurements-check", start) }

func start(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	release := flags.Bool("release", false, "fail when a figure is old")
	pattern := flags.String("pages", "docs/measurements*.md", "the pages")
	if err := flags.Parse(args); err != nil {
		return err //nolint:wrapcheck // It names the flag.
	}
	pages, err := filepath.Glob(*pattern)
	if err != nil || len(pages) == 0 {
		return fmt.Errorf("no page is named %s; run this in the folder of the module", *pattern)
	}
	repository := repository{dir: ".", sources: map[string][]string{}}
	old, err := repository.list(ctx, pages)
	if err != nil {
		return err
	}
	if old > 0 && *release {
		return fmt.Errorf("%d parts: %w", old, errOld)
	}
	return nil
}

// repository is a clone of the module.
type repository struct {
	dir string
	// sources maps programs to the files that they are built of.
	sources map[string][]string
}

// list prints a verdict for each section of the pages, and returns how many are old.
func (r repository) list(ctx context.Context, pages []string) (old int, err error) {
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return 0, fmt.Errorf("reading measurements: %w", err)
		}
		for _, section := range document.Sections(string(text)) {
			if !section.Tables && !section.Marked {
				continue
			}
			verdict, isOld, err := r.judge(ctx, section)
			if err != nil {
				return 0, fmt.Errorf("%s, %q: %w", page, section.Title, err)
			}
			fmt.Printf("%s, %q: %s\n", page, section.Title, verdict)
			if isOld {
				old++
			}
		}
	}
	return old, nil
}

// judge returns the text about a section and reports whether its figures are old.
func (r repository) judge(ctx context.Context, section document.Section) (verdict string, isOld bool, err error) {
	if !section.Tables {
		return "has no figures; renew: " + section.Command, true, nil
	}
	o := section.Origin
	if o.Commit == "" {
		return "", false, errors.New("it has a table and no comment <!-- measured at COMMIT: PROGRAMS -->; add one")
	}
	id, dirty := strings.CutSuffix(o.Commit, ", changed")
	if _, err := r.run(ctx, "git", "cat-file", "-e", id+"^{commit}"); err != nil {
		return "", false, fmt.Errorf("commit %s is not in this clone; get the whole history, or measure again: %w", id, err)
	}
	changed, err := r.changed(ctx, id, o.Programs)
	if err != nil {
		return "", false, err
	}
	renew := cmp.Or(section.Command, "the section names no command")
	switch {
	case dirty:
		return "measured with changes that no commit has; renew: " + renew, true, nil
	case len(changed) > 0:
		return fmt.Sprintf("measured at %s; changed since: %s; renew: %s", id, list(changed), renew), true, nil
	}
	return "measured at " + id + ", and nothing that it measures has changed", false, nil
}

// list returns the first names and the number of the others.
func list(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// changed returns what the programs depend on that has changed since a commit: folders, and go.mod.
func (r repository) changed(ctx context.Context, commit string, programs []string) ([]string, error) {
	files, err := r.run(ctx, "git", "diff", "--name-only", commit)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, program := range programs {
		of, err := r.sourcesOf(ctx, program)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if name := dependency(file, program, of); name != "" {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// dependency returns what a program depends on that a changed file belongs to: its folder, or go.mod. It is empty if the
// program does not depend on the file. sources are the folders and files of the program.
func dependency(file, program string, sources []string) string {
	folder := path.Dir(file)
	switch {
	case file == modules:
		return modules
	case folder == reports || strings.HasSuffix(file, "_test.go"):
		return ""
	case slices.Contains(sources, file), path.Ext(file) == ".go" && slices.Contains(sources, folder), folder == manifests && program == manifested:
		return folder
	default:
		return ""
	}
}

// sourcesOf returns the folders of the module's packages of a program, and the files that they embed. A
// folder stands for all Go files in it, also those that do not exist any more.
func (r repository) sourcesOf(ctx context.Context, program string) ([]string, error) {
	if of, known := r.sources[program]; known {
		return of, nil
	}
	root, err := r.run(ctx, "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return nil, err
	}
	const inModule = "{{if .Module}}{{if .Module.Main}}{{.Dir}}{{range .EmbedFiles}} {{$.Dir}}/{{.}}{{end}}{{end}}{{end}}"
	all, err := r.run(ctx, "go", "list", "-deps", "-f", inModule, program)
	if err != nil {
		return nil, err
	}
	for i, name := range all {
		if all[i], err = filepath.Rel(root[0], name); err != nil {
			return nil, fmt.Errorf("naming %s: %w", name, err)
		}
	}
	r.sources[program] = all
	return all, nil
}

// run returns the lines that a command prints.
func (r repository) run(ctx context.Context, name string, args ...string) ([]string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.Fields(string(out)), nil
}
