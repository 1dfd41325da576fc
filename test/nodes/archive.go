package nodes

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
)

// archive returns a tar archive with one program at its root.
func archive(program string) (io.ReadCloser, error) {
	body, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer

	w := tar.NewWriter(&out)

	err = w.WriteHeader(&tar.Header{Name: filepath.Base(program), Mode: 0o755, Size: int64(len(body))})
	if err == nil {
		_, err = w.Write(body)
	}

	if err == nil {
		err = w.Close()
	}

	return io.NopCloser(&out), err
}
