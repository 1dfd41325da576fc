package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/authoring/mirror"
	"github.com/chandlery/chandlery/bundles/authoring/render"
	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/cmd/internal/exitcode"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
	"github.com/chandlery/chandlery/cmd/internal/progress"
	"github.com/chandlery/chandlery/cmd/internal/selectionflags"
	"github.com/chandlery/chandlery/server/source"
)

// imagesOptions are the flags of "catalog images".
type imagesOptions struct {
	read      readOptions
	selection selectionflags.Flags
	form      string
	mirrors   []string
	check     []string
}

func newImagesCommand() *cobra.Command {
	var o imagesOptions
	cmd := &cobra.Command{
		Use:   "images CATALOG",
		Short: "List the images that a catalog needs",
		Long: "List the images of a catalog, or of the part that flags select. These are the catalog image, the bundle images and\n" +
			"their related images. Output formats for mirror tools are skopeo (for 'skopeo sync'), oc-mirror, and mapping (for\n" +
			"'oc image mirror').\n\n" +
			"With --check, the command prints images that the mirror lacks, and images without a configuration or layers for the\n" +
			"platform. It also prints tags with another digest than in their own registry. The mirror must use the same paths.\n\n" +
			"Exit codes:\n" +
			"  0  the mirror has all images, or --check is not set\n" +
			"  1  the mirror lacks images\n" +
			"  2  the command failed",
		Example: "  catalog images ./catalog --package lantern -o skopeo > sync.yaml\n" +
			"  catalog images registry.example.com/team/catalog:v1 --check mirror.example.com/team",
		Args: func(cmd *cobra.Command, args []string) error { return exitcode.Troubled(cobra.ExactArgs(1)(cmd, args)) },
		RunE: func(cmd *cobra.Command, args []string) error { return exitcode.Troubled(o.run(cmd, args[0])) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.form, "output", "o", mirror.Lines, "output format: "+strings.Join(mirror.Forms(), ", "))
	complete(cmd, "output", mirror.Forms()...)
	flags.StringSliceVar(&o.mirrors, "mirror", nil,
		"destination for -o mapping, as [REGISTRY=]HOST[/PREFIX]; with REGISTRY=, for the images of that registry only; may be repeated")
	flags.StringSliceVar(&o.check, "check", nil, "mirror that must have the images, in the format of --mirror")
	o.selection.AddFlags(flags)
	o.read.addFlags(flags)
	flagenv.Describe(flags, envPrefix)
	return cmd
}

func (o *imagesOptions) run(cmd *cobra.Command, catalog string) error {
	mirrors, check, err := o.parse() // check the options before the whole catalog is read
	if err != nil {
		return err
	}
	var images []mirror.Image
	err = o.read.with(cmd, func(opener *render.Opener) error {
		part, err := selected(cmd, opener, &o.selection, catalog)
		if err != nil {
			return err
		}
		done := progress.Start(cmd.ErrOrStderr(), o.read.quiet, "Reading "+catalog)
		defer done()
		images, err = mirror.List(cmd.Context(), catalogImage(catalog), part)
		return err //nolint:wrapcheck // names the package
	})
	if err != nil {
		return err
	}
	if !check.IsZero() {
		return o.ask(cmd, images, check)
	}
	text, err := mirror.Format(o.form, images, mirrors)
	if err != nil {
		return fmt.Errorf("--output %s: %w", o.form, err)
	}
	if _, err := io.WriteString(cmd.OutOrStdout(), text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// parse returns the mirrors of --mirror and --check.
func (o *imagesOptions) parse() (mirrors, check mirror.Mirrors, err error) {
	if mirrors, err = mirror.ParseMirrors(o.mirrors); err != nil {
		return mirrors, check, fmt.Errorf("--mirror %w", err)
	}
	if check, err = mirror.ParseMirrors(o.check); err != nil {
		return mirrors, check, fmt.Errorf("--check %w", err)
	}
	if check.IsZero() {
		if _, err = mirror.Format(o.form, nil, mirrors); err != nil {
			return mirrors, check, fmt.Errorf("--output %s: %w", o.form, err)
		}
	}
	return mirrors, check, nil
}

// catalogImage returns the image of a catalog; empty for a directory.
func catalogImage(catalog string) string {
	if reference, ok := strings.CutPrefix(catalog, render.ImagePrefix); ok || !render.IsDirectory(catalog) {
		return reference
	}
	return ""
}

// ask prints the images that mirrors lack.
func (o *imagesOptions) ask(cmd *cobra.Command, images []mirror.Image, mirrors mirror.Mirrors) error {
	client, err := o.read.pulling.Client(agent())
	if err != nil {
		return err //nolint:wrapcheck // names the flag
	}
	done := progress.Start(cmd.ErrOrStderr(), o.read.quiet, "Asking "+mirrors.String())
	result, err := mirror.Check(cmd.Context(), client, images, mirrors)
	done()
	if err != nil {
		return fmt.Errorf("--check: %w", err)
	}
	var unknown error
	for _, m := range result.Missing {
		switch {
		case m.Incomplete != nil:
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s is incomplete: %v\n", m.Image, m.Mirrored, m.Incomplete)
		case m.Different != nil:
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s is another image: %v\n", m.Image, m.Mirrored, m.Different)
		case m.Reason == image.ReasonNotFound:
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s is missing\n", m.Image, m.Mirrored)
		default:
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s; %s\n", m.Image, m.Message, source.ImageRemedy(m.Err))
			unknown = errUnknown
		}
	}
	if result.Uncompared > 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "Not compared with their registries: %s, first %v\n", bundles.Count(result.Uncompared, "tag"), result.Err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s has %d of %d images\n", mirrors.String(), len(images)-len(result.Missing), len(images))
	if unknown != nil {
		return unknown
	}
	if len(result.Missing) > 0 {
		return exitcode.ErrFound()
	}
	return nil
}

var errUnknown = errors.New("the mirror could not be checked for all images")
