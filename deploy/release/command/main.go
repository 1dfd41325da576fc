// Command command makes, verifies and pushes releases. It needs nothing but Go and git.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/deploy/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // the process ends, and its signal handling with it
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{Use: "release", Short: "Make, verify and push releases", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(buildCommand(), verifyCommand(), pushCommand())
	return root
}

// buildFlags are the flags of the command that makes a release.
type buildFlags struct {
	version, images, downloads, builder string
	key                                 string
	keyless                             bool
	platforms, plugins                  []string
}

func buildCommand() *cobra.Command {
	var f buildFlags
	cmd := &cobra.Command{
		Use: "build DIR", Short: "Make a release in a folder", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.version, "version", "", "version of the release")
	flags.StringVar(&f.images, "images", "ghcr.io", "registry to which the images are pushed later: HOST or HOST/PREFIX")
	flags.StringVar(&f.downloads, "downloads", "", "URL from which users download the files (default that of a release on GitHub)")
	flags.StringVar(&f.builder, "builder", "https://github.com/chandlery/chandlery/blob/main/docs/release.md#by-hand", "URI of the machine or the workflow that builds, for the provenance")
	flags.StringVar(&f.key, "key", "", "file or URI of cosign's private key; its password is in $COSIGN_PASSWORD")
	flags.BoolVar(&f.keyless, "keyless", false, "sign with the identity of the environment, such as that of a workflow")
	flags.StringSliceVar(&f.platforms, "platform", nil, "platform of images, may be repeated (default linux/amd64 and linux/arm64)")
	flags.StringSliceVar(&f.plugins, "plugin", nil, "platform of the kubectl plugin, may be repeated (default linux, darwin and windows, each for amd64 and arm64)")
	cmd.MarkFlagsMutuallyExclusive("key", "keyless")
	return cmd
}

func (f buildFlags) run(cmd *cobra.Command, dir string) error {
	options, err := f.options(cmd.Context())
	if err != nil {
		return err
	}
	tools, err := release.BuildTools(cmd.Context(), ".")
	if err != nil {
		return err //nolint:wrapcheck // names the tool
	}
	if err := release.Build(cmd.Context(), dir, options, tools, cmd.ErrOrStderr()); err != nil {
		return err //nolint:wrapcheck // says what it does
	}
	fmt.Fprintf(cmd.OutOrStdout(), "made release %s in %s\n", options.Version, dir)
	return nil
}

var errNoSigner = errors.New("a version without pre-release needs a signer: set KEY=FILE, or KEYLESS=1 where cosign finds an identity")

func (f buildFlags) options(ctx context.Context) (release.Options, error) {
	version, err := release.ParseVersion(f.version)
	if err != nil {
		return release.Options{}, err //nolint:wrapcheck // names the version
	}
	options := release.Options{Version: version, Images: strings.TrimSuffix(f.images, "/"), Downloads: f.downloads, Builder: f.builder}
	if options.Downloads == "" {
		options.Downloads = "https://github.com/chandlery/chandlery/releases/download/" + version.Tag()
	}
	if f.key != "" || f.keyless {
		options.Signer = &release.Signer{Key: f.key}
	} else if !version.IsPrerelease() {
		return release.Options{}, errNoSigner
	}
	if options.Platforms, err = platforms(f.platforms); err != nil {
		return release.Options{}, err
	}
	if options.PluginPlatforms, err = platforms(f.plugins); err != nil {
		return release.Options{}, err
	}
	options.Source, err = source(ctx)
	return options, err
}

func platforms(names []string) ([]v1.Platform, error) {
	var all []v1.Platform
	for _, name := range names {
		platform, err := v1.ParsePlatform(name)
		if err != nil {
			return nil, fmt.Errorf("platform %s: %w; write linux/amd64", name, err)
		}
		all = append(all, *platform)
	}
	return all, nil
}

var errChanged = errors.New("the checkout differs from its commit; commit or stash the changes first")

// source returns the commit that is checked out. It fails if files differ from the commit.
func source(ctx context.Context) (release.Source, error) {
	status, err := output(ctx, "git", "status", "--porcelain")
	if err != nil {
		return release.Source{}, err
	}
	if status != "" {
		return release.Source{}, fmt.Errorf("%w:\n%s", errChanged, status)
	}
	commit, err := output(ctx, "git", "rev-parse", "HEAD")
	if err != nil {
		return release.Source{}, err
	}
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		if text, err = output(ctx, "git", "log", "-1", "--format=%ct"); err != nil {
			return release.Source{}, err
		}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return release.Source{}, fmt.Errorf("the time of the release: %w; set SOURCE_DATE_EPOCH to seconds since 1970", err)
	}
	version, err := output(ctx, "go", "env", "GOVERSION")
	return release.Source{Dir: ".", Commit: commit, Created: time.Unix(seconds, 0).UTC(), Go: version}, err
}

// output runs a program and returns what it prints, without space around it.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

func verifyCommand() *cobra.Command {
	var trust release.Trust
	cmd := &cobra.Command{
		Use: "verify DIR", Short: "Verify a release as a user would", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			tools, err := release.BuildTools(cmd.Context(), ".")
			if err != nil {
				return err //nolint:wrapcheck // names the tool
			}
			if own := filepath.Join(args[0], "cosign.pub"); trust == (release.Trust{}) && exists(own) {
				fmt.Fprintf(cmd.OutOrStdout(), "verifying with the key in %s; set PUBLIC_KEY to the key of the maintainers to know who signed\n", own)
				trust.Key = own
			}
			return release.Verify(cmd.Context(), args[0], trust, tools, cmd.OutOrStdout()) //nolint:wrapcheck // says what it does
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&trust.Key, "key", "", "file or URI of cosign's public key (default cosign.pub of the release)")
	flags.StringVar(&trust.Identity, "identity", "", "identity that must have signed a release without a key")
	flags.StringVar(&trust.Issuer, "issuer", "", "issuer of that identity")
	cmd.MarkFlagsRequiredTogether("identity", "issuer")
	cmd.MarkFlagsMutuallyExclusive("key", "identity")
	return cmd
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func pushCommand() *cobra.Command {
	return &cobra.Command{
		Use: "push DIR", Short: "Push images, chart and signatures to the registry that the release names", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			host, err := release.Push(cmd.Context(), args[0])
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), "pushed to "+host)
			}
			return err //nolint:wrapcheck // says what it does
		},
	}
}
