package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/authoring/opmcache"
	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/cmd/internal/catalogimage"
	"github.com/chandlery/chandlery/cmd/internal/document"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
	"github.com/chandlery/chandlery/cmd/internal/progress"
	"github.com/chandlery/chandlery/cmd/internal/pulling"
)

// imageOptions are the contents of a catalog image.
type imageOptions struct {
	base   string
	labels []string
}

func (o *imageOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.base, "base", catalogimage.Scratch,
		"base image: Chandlery's registry or opm; scratch: an image without a program, for CatalogSources with spec.grpcPodConfig.extractContent")
	flags.StringArrayVar(&o.labels, "label", nil, "label of the image, as NAME=VALUE; may be repeated")
}

var errLabel = errors.New("--label must be NAME=VALUE")

func (o *imageOptions) labelMap() (map[string]string, error) {
	labels := map[string]string{}
	for _, text := range o.labels {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%w, found %q", errLabel, text)
		}
		labels[name] = value
	}
	return labels, nil
}

// pushOptions are the flags of "catalog push".
type pushOptions struct {
	pulling   pulling.Flags
	image     imageOptions
	platforms []string
	layout    string
	opmCache  bool
	quiet     bool
}

func newPushCommand() *cobra.Command {
	var o pushOptions
	cmd := &cobra.Command{
		Use:   "push CATALOG IMAGE",
		Short: "Build the image of a catalog directory and push it",
		Long: "Build the image of a catalog directory and push it, without a container engine. The image contains the catalog and the\n" +
			"catalog label. For a fast start, it also contains the index of Chandlery's registry, or opm's cache, depending on the\n" +
			"base. The command also pushes a list of all bundles in SPDX format, and attaches it to the image as an OCI referrer.\n" +
			"If the catalog has problems, the command pushes nothing.\n\n" +
			"The image is reproducible for the same catalog and base, unless it contains opm's cache. $SOURCE_DATE_EPOCH sets the\n" +
			"time of the image, in seconds since 1970 (default 0).",
		Example: "  catalog push ./catalog registry.example.com/team/catalog:v1 --base registry.example.com/chandlery/registry:v1\n" +
			"  catalog push ./catalog registry.example.com/team/catalog:v1 --layout ./image",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0], args[1]) },
	}
	flags := cmd.Flags()
	o.image.addFlags(flags)
	flags.StringSliceVar(&o.platforms, "platform", nil,
		"platform of the image, as os/architecture; may be repeated; default: all platforms of the base, or linux/amd64 and linux/arm64 for scratch")
	flags.StringVar(&o.layout, "layout", "", "write the image to this new folder as an OCI layout, instead of pushing it")
	flags.BoolVar(&o.opmCache, "opm-cache", false, "if the base is scratch, also add opm's cache; OLM needs it, because OLM serves the image with opm")
	o.pulling.AddRegistryFlags(flags)
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "do not show progress, which appears only on a terminal")
	flagenv.Describe(flags, envPrefix)
	return cmd
}

func (o *pushOptions) run(cmd *cobra.Command, catalog, reference string) (err error) {
	client, err := o.pulling.Client(agent())
	if err != nil {
		return err //nolint:wrapcheck // names the flag
	}
	if !image.IsReference(reference) {
		return fmt.Errorf("%w, found %q", errReference, reference)
	}
	scratch, err := os.MkdirTemp("", "catalog-push-*")
	if err != nil {
		return fmt.Errorf("creating a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	options, err := o.options(cmd, client, catalog, scratch)
	if err != nil {
		return err
	}
	done := progress.Start(cmd.ErrOrStderr(), o.quiet, "Building "+reference)
	built, err := catalogimage.Build(cmd.Context(), options)
	done()
	if problems, ok := errors.AsType[bundles.Problems](err); ok {
		return problems.Below(catalog)
	}
	if err != nil {
		return err //nolint:wrapcheck // says what it does
	}
	return o.write(cmd, client, built, reference)
}

func (o *pushOptions) options(cmd *cobra.Command, client *image.Client, catalog, scratch string) (catalogimage.Options, error) {
	options := catalogimage.Options{Catalog: catalog, Scratch: scratch, OpmCache: opmcache.Create, WithOpmCache: o.opmCache}
	var err error
	if options.Labels, err = o.image.labelMap(); err != nil {
		return options, err
	}
	if options.Created, err = created(); err != nil {
		return options, err
	}
	for _, text := range o.platforms {
		platform, err := v1.ParsePlatform(text)
		if err != nil || platform.OS == "" || platform.Architecture == "" {
			return options, fmt.Errorf("%w, found %q", errPlatform, text)
		}
		options.Platforms = append(options.Platforms, *platform)
	}
	if o.image.base == catalogimage.Scratch {
		if len(options.Platforms) == 0 {
			options.Platforms = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
		}
		return options, nil
	}
	done := progress.Start(cmd.ErrOrStderr(), o.quiet, "Reading "+o.image.base)
	defer done()
	options.Base, err = catalogimage.Base(cmd.Context(), client, o.image.base, options.Platforms)
	return options, err //nolint:wrapcheck // names the image
}

var (
	errReference = errors.New("the image must be named as HOST/PATH:TAG, in lower case")
	errPlatform  = errors.New("--platform must be os/architecture, as linux/amd64")
	errEpoch     = errors.New("$SOURCE_DATE_EPOCH must be a number of seconds since 1970")
)

// created returns the creation time for images.
func created() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w, found %q", errEpoch, text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func (o *pushOptions) write(cmd *cobra.Command, client *image.Client, built *catalogimage.Built, reference string) error {
	what := bundles.Count(built.Packages, "package") + ", " + bundles.Count(built.Bundles, "bundle") + ", " + bundles.Count(len(built.Images), "platform")
	if o.layout != "" {
		if err := built.WriteLayout(o.layout, reference); err != nil {
			return err //nolint:wrapcheck // names the folder
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, written to %s\n", reference, what, o.layout)
		return nil
	}
	done := progress.Start(cmd.ErrOrStderr(), o.quiet, "Pushing "+reference)
	digest, err := built.Push(cmd.Context(), client, reference)
	done()
	if err != nil {
		return err //nolint:wrapcheck // names the image
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s@%s: %s\n", reference, digest, what)
	return nil
}

func newDockerfileCommand() *cobra.Command {
	var (
		o       imageOptions
		builder string
	)
	cmd := &cobra.Command{
		Use:     "dockerfile DIR",
		Short:   "Print a Dockerfile for the image of a catalog directory",
		Long:    "Print a Dockerfile for the image of a catalog directory. 'catalog push' builds the image without a container engine.",
		Example: "  catalog dockerfile catalog --base registry.example.com/chandlery/registry:v1 > catalog.Dockerfile",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			labels, err := o.labelMap()
			if err != nil {
				return err
			}
			if builder == "" {
				builder = o.base
			}
			if builder == catalogimage.Scratch {
				return errNoBuilder
			}
			if _, err := io.WriteString(document.Writer(cmd), catalogimage.Dockerfile(args[0], builder, o.base, labels)); err != nil {
				return fmt.Errorf("printing: %w", err)
			}
			return nil
		},
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&builder, "builder", "", "image of Chandlery's registry or of opm, in which the build creates the index or opm's cache; default: --base; required if --base is scratch")
	flagenv.Describe(cmd.Flags(), envPrefix)
	return cmd
}

var errNoBuilder = errors.New("scratch cannot create an index: name an image of Chandlery's registry or of opm with --base or --builder")
