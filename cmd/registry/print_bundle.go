package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/bundlelog"
	"github.com/chandlery/chandlery/cmd/internal/exitcode"
)

func newPrintBundleCommand() *cobra.Command {
	root := "/"
	cmd := &cobra.Command{
		Use:    "print-bundle",
		Hidden: true,
		Short:  "Print the manifests of a bundle image from inside a container",
		Long: "Print the manifests of the image in whose container this program runs, as an archive in lines of text. The\n" +
			"supervisor reads them from the log of the pod. The exit code is 2 if there are none, and 3 if they are too large.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			archive, err := archiveOf(root)
			switch {
			case errors.Is(err, bundlelog.ErrTooLarge):
				return &exitcode.Error{Code: bundlelog.ExitTooLarge, Err: err}
			case err != nil:
				return &exitcode.Error{Code: bundlelog.ExitUnusable, Err: err}
			}
			return bundlelog.Write(cmd.OutOrStdout(), archive)
		},
	}
	cmd.Flags().StringVar(&root, "root", root, "root directory of the image")
	return cmd
}

// archiveOf returns the archive with the manifests of an image whose files are in a directory.
func archiveOf(dir string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("--root: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing was written
	archive, bundle := &boundedBuffer{}, image.Bundle()
	if err := bundle.Archive(archive, root, image.BundleLimits()); err != nil {
		return nil, err
	}
	return archive.Bytes(), nil
}

// boundedBuffer is a buffer for an archive that fits a log.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > bundlelog.MaxBytes {
		return 0, bundlelog.ErrTooLarge
	}
	return b.Buffer.Write(p)
}
