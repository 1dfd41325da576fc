package release

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/chandlery/chandlery/bundles/image/layer"
	"github.com/chandlery/chandlery/deploy/images"
)

// pluginPlatforms returns the platforms of the kubectl plugin.
func pluginPlatforms() []v1.Platform {
	var all []v1.Platform
	for _, system := range []string{"darwin", "linux", windows} {
		for _, architecture := range []string{"amd64", "arm64"} {
			all = append(all, v1.Platform{OS: system, Architecture: architecture})
		}
	}
	return all
}

const windows = "windows"

// pluginFile returns the name of the plugin's program on a platform.
func pluginFile(platform v1.Platform) string {
	if platform.OS == windows {
		return images.Plugin + ".exe"
	}
	return images.Plugin
}

// archiveName returns the name of the plugin's archive for a platform.
func archiveName(version Version, platform v1.Platform) string {
	extension := ".tar.gz"
	if platform.OS == windows {
		extension = ".zip"
	}
	return platformName(images.Plugin, version, platform) + extension
}

// platformName returns the name of a file for a platform, without its extension.
func platformName(name string, version Version, platform v1.Platform) string {
	return fmt.Sprintf("%s_%s_%s_%s", name, version, platform.OS, platform.Architecture)
}

// compress builds a layer: [layer.New] or [layer.NewFast].
type compress func(files []layer.Entry, modified time.Time) (v1.Layer, error)

// archive returns files as an archive of the platform's usual format: zip for Windows, and tar with gzip for others.
func archive(platform v1.Platform, files []layer.Entry, modified time.Time, gzip compress) ([]byte, error) {
	if platform.OS == windows {
		return zipped(files, modified)
	}
	return tarred(files, modified, gzip)
}

// tarred returns files as tar with gzip, in the same way as the layers of images.
func tarred(files []layer.Entry, modified time.Time, gzip compress) ([]byte, error) {
	packed, err := gzip(files, modified)
	if err != nil {
		return nil, err //nolint:wrapcheck // says what it does
	}
	content, err := packed.Compressed()
	if err != nil {
		return nil, fmt.Errorf("reading an archive: %w", err)
	}
	return io.ReadAll(content)
}

func zipped(files []layer.Entry, modified time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, file := range files {
		header := &zip.FileHeader{Name: file.Name, Method: zip.Deflate, Modified: modified.UTC()}
		header.SetMode(file.Mode)
		entry, err := w.CreateHeader(header)
		if err != nil {
			return nil, fmt.Errorf("adding %s to an archive: %w", file.Name, err)
		}
		if _, err := entry.Write(file.Body); err != nil {
			return nil, fmt.Errorf("adding %s to an archive: %w", file.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("completing an archive: %w", err)
	}
	return out.Bytes(), nil
}
