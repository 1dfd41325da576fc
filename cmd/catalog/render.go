package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/bundles/authoring/render"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
	"github.com/chandlery/chandlery/cmd/internal/progress"
	"github.com/chandlery/chandlery/cmd/internal/pulling"
)

// agent returns the user agent for registries.
func agent() string { return "chandlery-catalog/" + version }

// referenceHelp describes the arguments of commands that read bundles and catalogs.
const referenceHelp = "A REFERENCE is the directory or the image of a bundle or of a catalog. Write oci:IMAGE if a directory has the same\n" +
	"name as the image."

// readOptions holds the flags for reading references.
type readOptions struct {
	pulling  pulling.Flags
	imageRef string
	quiet    bool
}

// addFlags adds the flags for reading references.
func (r *readOptions) addFlags(flags *pflag.FlagSet) {
	r.pulling.AddFlags(flags)
	r.addQuietFlag(flags)
}

// addImageRefFlag adds the flag for the images of bundles in directories.
func (r *readOptions) addImageRefFlag(flags *pflag.FlagSet) {
	flags.StringVar(&r.imageRef, "image-ref-template", "",
		"image reference for a bundle in a directory, with {{.Package}}, {{.Name}} and {{.Version}}; "+
			"without this flag, the catalog contains the manifests of the bundle instead of a reference")
}

func (r *readOptions) addQuietFlag(flags *pflag.FlagSet) {
	flags.BoolVarP(&r.quiet, "quiet", "q", false, "do not show progress, which appears only on a terminal")
}

// opener returns an opener for references. It shows its progress on a terminal.
func (r *readOptions) opener(cmd *cobra.Command) (*render.Opener, error) {
	client, err := r.pulling.Client(agent())
	if err != nil {
		return nil, err //nolint:wrapcheck // names the flag
	}
	opener := &render.Opener{Client: client, Pulling: func(reference string) func() {
		return progress.Start(cmd.ErrOrStderr(), r.quiet, "Pulling "+reference)
	}}
	if r.imageRef != "" {
		if opener.ImageRef, err = render.ParseImageRef(r.imageRef); err != nil {
			return nil, fmt.Errorf("--image-ref-template: %w", err)
		}
	}
	return opener, nil
}

// with calls run with an opener, and then removes what the opener has extracted.
func (r *readOptions) with(cmd *cobra.Command, run func(*render.Opener) error) (err error) {
	opener, err := r.opener(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opener.Close()) }()
	return run(opener)
}

// formatFlag is the flag for the format of a catalog.
type formatFlag struct{ value string }

var errFormat = errors.New("--output must be json or yaml")

func (f *formatFlag) addFlag(cmd *cobra.Command, value, usage string) {
	cmd.Flags().StringVarP(&f.value, "output", "o", value, usage+": "+strings.Join(render.Formats(), " or "))
	complete(cmd, "output", render.Formats()...)
	// Validate the flag before a whole catalog is read.
	cmd.PreRunE = func(*cobra.Command, []string) error {
		_, err := f.format()
		return err
	}
}

func (f *formatFlag) format() (render.Format, error) {
	if !slices.Contains(render.Formats(), f.value) {
		return "", fmt.Errorf("%w, found %q", errFormat, f.value)
	}
	return render.Format(f.value), nil
}

// complete completes the values of a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) //nolint:forbidigo // the flag has just been added
	}
}

// renderOptions are the flags of "catalog render".
type renderOptions struct {
	read    readOptions
	output  catalogOutput
	migrate string
}

func newRenderCommand() *cobra.Command {
	var o renderOptions
	cmd := &cobra.Command{
		Use:   "render REFERENCE...",
		Short: "Print bundles and catalogs as one file-based catalog",
		Long: "Print bundles and catalogs as one file-based catalog. Packages are sorted by name, and\n" +
			"their objects have a fixed order.\n\n" + referenceHelp,
		Example: "  catalog render registry.example.com/team/lantern-bundle:v1.0.0\n" +
			"  catalog render ./catalog ./bundles/lantern-1.1.0 -o yaml > catalog.yaml",
		Args: cobra.MinimumNArgs(1),
		RunE: o.run,
	}
	o.output.addFlags(cmd)
	flags := cmd.Flags()
	addMigrateFlag(cmd, &o.migrate, render.NoMigration)
	o.read.addFlags(flags)
	o.read.addImageRefFlag(flags)
	flagenv.Describe(flags, envPrefix)
	return cmd
}

// addMigrateFlag adds the flag for the conversion of objects to newer forms.
func addMigrateFlag(cmd *cobra.Command, level *string, value string) {
	levels := render.MigrationLevels()
	cmd.Flags().StringVar(level, "migrate-level", value, "conversions to apply: none, "+render.CSVMetadata+" (see 'catalog convert'), or all")
	complete(cmd, "migrate-level", levels...)
}

func (o *renderOptions) run(cmd *cobra.Command, args []string) error {
	return o.read.with(cmd, func(opener *render.Opener) error {
		source, err := openAll(cmd, opener, args)
		if err != nil {
			return err
		}
		if source, err = render.Migrated(source, o.migrate); err != nil {
			return fmt.Errorf("--migrate-level: %w", err)
		}
		return o.output.write(cmd, o.read.quiet, "Rendering", source)
	})
}

// openAll returns the content of all references.
func openAll(cmd *cobra.Command, opener *render.Opener, references []string) (render.Source, error) {
	sources := make([]render.Source, len(references))
	for i, reference := range references {
		var err error
		if sources[i], err = opener.Open(cmd.Context(), reference); err != nil {
			return nil, fmt.Errorf("rendering: %w", err)
		}
	}
	return render.Joined(sources...), nil
}
