// Command build builds the OCI images of the programs, and writes them to an OCI layout or pushes
// them to a registry. It needs nothing but Go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/deploy/images"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1) //nolint:gocritic // the process ends, and its signal handling with it
	}
}

// flags are the command-line flags.
type flags struct {
	layout, push    string
	insecure        bool
	tags, platforms []string
	version, commit string
}

var errNowhere = errors.New("say where the images go: --layout DIR, --push HOST/PREFIX, or both")

func (f *flags) parse(args []string, out io.Writer) error {
	set := pflag.NewFlagSet("images", pflag.ContinueOnError)
	set.SetOutput(out)
	set.SortFlags = false
	set.StringVar(&f.layout, "layout", "", "folder to write an OCI layout to")
	set.StringVar(&f.push, "push", "", "registry, and what to put before the names there: registry.example.com or registry.example.com/team; the names are chandlery/registry and chandlery/supervisor")
	set.BoolVar(&f.insecure, "insecure", false, "push by plain HTTP")
	set.StringSliceVar(&f.tags, "tag", nil, "tag of the images, may be repeated; default: the version, and latest")
	set.StringSliceVar(&f.platforms, "platform", nil, "platform to build for, may be repeated; default: linux/amd64 and linux/arm64")
	set.StringVar(&f.version, "version", "devel", "version that the programs report")
	set.StringVar(&f.commit, "commit", "unknown", "commit that the programs report")
	set.Usage = func() {
		fmt.Fprintf(out, "Make the OCI images of the programs.\n\n%s\n$SOURCE_DATE_EPOCH is the time that everything in them carries, in seconds since 1970;\ndefault: that of the last commit.\n", set.FlagUsages())
	}
	if err := set.Parse(args); err != nil {
		return err //nolint:wrapcheck // the error names the flag
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unknown argument %q; see --help", set.Arg(0))
	}
	if f.layout == "" && f.push == "" {
		return errNowhere
	}
	if len(f.tags) == 0 {
		f.tags = []string{asTag(f.version), "latest"}
	}
	return nil
}

// asTag replaces the characters of a version that a tag must not contain.
func asTag(version string) string { return strings.ReplaceAll(version, "+", "_") }

func run(ctx context.Context, args []string, out io.Writer) error {
	var f flags
	if err := f.parse(args, out); err != nil {
		return err
	}
	options, err := f.options(ctx)
	if err != nil {
		return err
	}
	// Check the repositories before the build, which takes minutes.
	repositories, err := f.repositories()
	if err != nil {
		return err
	}
	all, err := images.Build(ctx, options)
	if err != nil {
		return err //nolint:wrapcheck // wrapped where it arises
	}
	if err := report(out, all); err != nil {
		return err
	}
	if f.layout != "" {
		if err := images.WriteLayout(f.layout, all, f.tags); err != nil {
			return err //nolint:wrapcheck // names the folder
		}
		fmt.Fprintf(out, "written to %s as %s\n", f.layout, strings.Join(f.tags, ", "))
	}
	for i, repository := range repositories {
		if err := all[i].Push(ctx, repository, f.tags, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return err //nolint:wrapcheck // names the image
		}
		fmt.Fprintf(out, "pushed to %s as %s\n", repository, strings.Join(f.tags, ", "))
	}
	return nil
}

func (f *flags) options(ctx context.Context) (images.Options, error) {
	created, err := created(ctx)
	if err != nil {
		return images.Options{}, err
	}
	options := images.Options{Version: f.version, Commit: f.commit, Created: created}
	for _, text := range f.platforms {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return images.Options{}, fmt.Errorf("--platform %s: %w; write linux/amd64", text, err)
		}
		options.Platforms = append(options.Platforms, *platform)
	}
	return options, nil
}

// repositories returns the repository of each image; none if nothing is pushed.
func (f *flags) repositories() ([]name.Repository, error) {
	if f.push == "" {
		return nil, nil
	}
	options := []name.Option{name.WithDefaultRegistry("")}
	if f.insecure {
		options = append(options, name.Insecure)
	}
	var all []name.Repository
	for _, image := range images.Names() {
		repository, err := name.NewRepository(strings.TrimSuffix(f.push, "/")+"/"+image, options...)
		if err != nil {
			return nil, fmt.Errorf("--push %s: %w; write HOST or HOST/PREFIX", f.push, err)
		}
		if repository.RegistryStr() == "" {
			return nil, fmt.Errorf("--push %s: no host in it; write HOST or HOST/PREFIX", f.push)
		}
		all = append(all, repository)
	}
	return all, nil
}

// created returns SOURCE_DATE_EPOCH, or the time of the commit if it is not set.
func created(ctx context.Context) (time.Time, error) {
	text, from := os.Getenv("SOURCE_DATE_EPOCH"), "$SOURCE_DATE_EPOCH"
	if text == "" {
		log, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("asking git for the time of the commit: %w; set $SOURCE_DATE_EPOCH where there is no history", err)
		}
		text, from = strings.TrimSpace(string(log)), "the time of the commit"
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is no number of seconds: %w", from, err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// report prints the digests and sizes of the images.
func report(out io.Writer, all []images.Image) error {
	for _, image := range all {
		digest, err := image.Index.Digest()
		if err != nil {
			return fmt.Errorf("reading the digest of %s: %w", image.Name, err)
		}
		fmt.Fprintf(out, "%-36s %s\n", image.Name, digest)
		for _, p := range image.Platforms {
			digest, err := p.Image.Digest()
			if err != nil {
				return fmt.Errorf("reading the digest of %s: %w", image.Name, err)
			}
			size, err := images.CompressedSize(p.Image)
			if err != nil {
				return fmt.Errorf("measuring %s: %w", image.Name, err)
			}
			fmt.Fprintf(out, "  %-20s %8.1f MiB   %s\n", p.Platform, float64(size)/(1<<20), digest)
		}
	}
	return nil
}
