package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// copyOptions are the flags of "registry copy-content".
type copyOptions struct {
	programTo              string
	catalogFrom, catalogTo string
}

func newCopyContentCommand() *cobra.Command {
	var o copyOptions
	cmd := &cobra.Command{
		Use:   "copy-content",
		Short: "Copy this program or a catalog from one container to another",
		Long: "Copy this program, or a catalog, to a volume. With two steps, a container can serve a catalog\n" +
			"whose image does not contain this program:\n\n" +
			"1. In a container of the registry image, copy the program: set --program.to.\n" +
			"2. In a container of the catalog image, run the copy and copy the catalog: set --catalog.from and\n" +
			"   --catalog.to. The image needs no shell.",
		Example: "  registry copy-content --program.to=/utilities/registry\n" +
			"  /utilities/registry copy-content --catalog.from=/configs --catalog.to=/extracted-catalog/catalog",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.programTo, "program.to", "", "file to copy this program to")
	flags.StringVar(&o.catalogFrom, "catalog.from", "", "directory with the file-based catalog to copy")
	flags.StringVar(&o.catalogTo, "catalog.to", "", "directory to copy the catalog to; files of an earlier attempt are overwritten")
	return cmd
}

var (
	errNothingToCopy = errors.New("nothing to copy; set --program.to=FILE, or --catalog.from=DIR and --catalog.to=DIR")
	errHalf          = errors.New("--catalog.from and --catalog.to go together")
	errNotDirectory  = errors.New("is not a directory")
	errLinks         = errors.New("is a link to a directory, inside a linked directory; replace the link with the directory")
)

func (o *copyOptions) run() error {
	switch {
	case (o.catalogFrom == "") != (o.catalogTo == ""):
		return errHalf
	case o.catalogFrom == "" && o.programTo == "":
		return errNothingToCopy
	}
	if o.programTo != "" {
		if err := copyProgram(o.programTo); err != nil {
			return fmt.Errorf("copying this program to --program.to %s: %w", o.programTo, err)
		}
	}
	if o.catalogFrom == "" {
		return nil
	}
	info, err := os.Stat(o.catalogFrom)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s %w", o.catalogFrom, errNotDirectory)
	}
	if err != nil {
		return fmt.Errorf("--catalog.from: %w; name the directory of the image that contains the file-based catalog", err)
	}
	if err := copyTree(o.catalogFrom, o.catalogTo, false); err != nil {
		return fmt.Errorf("copying the catalog: %w", err)
	}
	return nil
}

func copyProgram(to string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	return copyFile(program, to, 0o755)
}

// copyTree copies a directory. It copies the targets of symbolic links, because they are not
// available later. linked is set below a link to a directory; a second such link could be a loop
// and is an error.
func copyTree(from, to string, linked bool) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // another user may serve the catalog
		return err
	}
	for _, entry := range entries {
		source, target := filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())
		info, err := os.Stat(source)
		isLink := entry.Type()&fs.ModeSymlink != 0
		switch {
		case err != nil:
			return err
		case info.IsDir() && isLink && linked:
			return fmt.Errorf("%s %w", source, errLinks)
		case info.IsDir():
			err = copyTree(source, target, linked || isLink)
		case info.Mode().IsRegular():
			err = copyFile(source, target, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyFile writes a temporary file and renames it. A restarted container finds a whole file or none.
func copyFile(from, to string, mode os.FileMode) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // nothing was written
	part := to + ".part"
	target, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if err := errors.Join(err, target.Chmod(mode), target.Close()); err != nil {
		return err
	}
	return os.Rename(part, to)
}
