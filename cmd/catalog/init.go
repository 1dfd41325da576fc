package main

import (
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles/authoring/edit"
	"github.com/chandlery/chandlery/bundles/authoring/render"
	"github.com/chandlery/chandlery/bundles/authoring/update"
	"github.com/chandlery/chandlery/cmd/internal/document"
	"github.com/chandlery/chandlery/cmd/internal/flagenv"
)

// initOptions are the flags of "catalog init".
type initOptions struct {
	catalog, channel, description, icon string
	format                              formatFlag
}

func newInitCommand() *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   "init PACKAGE",
		Short: "Create a package without bundles",
		Long: "Create a package without bundles. The command prints the olm.package object. With --catalog DIR, it writes the object\n" +
			"to DIR/PACKAGE/catalog.yaml instead. The catalog becomes valid when 'catalog add' adds a bundle to the default channel.",
		Example: "  catalog init lantern --catalog ./catalog\n" +
			"  catalog init lantern --default-channel fast --description README.md --icon lantern.svg -o json",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.catalog, "catalog", "", "catalog directory to write to; created if missing")
	flags.StringVarP(&o.channel, "default-channel", "c", "stable", "default channel, for clients that name no channel")
	flags.StringVarP(&o.description, "description", "d", "", "file with a description of the package, such as README.md")
	flags.StringVarP(&o.icon, "icon", "i", "", "file with an icon of the package: SVG, PNG, JPEG or GIF")
	o.format.addFlag(cmd, string(render.YAML), "format of the object")
	completeDir(cmd, "catalog")
	flagenv.Describe(flags, envPrefix)
	return cmd
}

func (o *initOptions) run(cmd *cobra.Command, name string) error {
	format, err := o.format.format()
	if err != nil {
		return err
	}
	pkg, err := o.newPackage(name)
	if err != nil {
		return err
	}
	text, err := format.Encode(&declcfg.DeclarativeConfig{Packages: []declcfg.Package{*pkg}})
	if err != nil {
		return err //nolint:wrapcheck // says what it does
	}
	if o.catalog == "" {
		if _, err := document.Writer(cmd).Write(text); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		return nil
	}
	file, err := update.Create(cmd.Context(), o.catalog, name, path.Join(name, "catalog."+string(format)), text)
	if err != nil {
		return err //nolint:wrapcheck // names the file
	}
	fmt.Fprintf(cmd.OutOrStdout(), "created %s\n", file)
	return nil
}

func (o *initOptions) newPackage(name string) (*declcfg.Package, error) {
	var description, icon []byte
	var errs []error
	for _, file := range []struct {
		flag, name string
		text       *[]byte
	}{{"--description", o.description, &description}, {"--icon", o.icon, &icon}} {
		if file.name == "" {
			continue
		}
		text, err := os.ReadFile(file.name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file.flag, err))
		}
		*file.text = text
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	pkg, err := edit.NewPackage(name, o.channel, string(description), icon)
	if err != nil {
		return nil, fmt.Errorf("creating the package: %w", err)
	}
	return pkg, nil
}

// completeDir completes directories for the value of a flag.
func completeDir(cmd *cobra.Command, flag string) {
	if err := cmd.MarkFlagDirname(flag); err != nil {
		panic(err) //nolint:forbidigo // the flag has just been added
	}
}
