package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/deploy/images"
)

// errNoFile is the error of an archive without a file.
var errNoFile = errors.New("the archive lacks a file")

// krew reads the manifest for krew.
func (v verifier) krew() (krewPlugin, error) {
	text, err := os.ReadFile(v.path(krewFile))
	if err != nil {
		return krewPlugin{}, fmt.Errorf("reading the manifest for krew: %w", err)
	}
	var manifest krewPlugin
	if err := yaml.UnmarshalStrict(text, &manifest); err != nil {
		return krewPlugin{}, fmt.Errorf("reading the manifest for krew: %w", err)
	}
	return manifest, nil
}

// plugin compares the archives with the manifest for krew. On a platform of the release it installs the plugin with
// krew, and runs it.
func (v verifier) plugin(ctx context.Context) error {
	manifest, err := v.krew()
	if err != nil {
		return err
	}
	files, err := v.readSums()
	if err != nil {
		return err
	}
	if err := differs(krewDifferences(manifest, v.version, files)...); err != nil {
		return err
	}
	archive := archiveName(v.version, v1.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH})
	if files[archive] == "" {
		return nil
	}
	if _, err := v.program(ctx, v.tools.Krew, "install", "--manifest="+v.path(krewFile), "--archive="+v.path(archive)); err != nil {
		return err
	}
	out, err := v.program(ctx, filepath.Join(v.scratch, "krew", "bin", "kubectl-chandlery"), "version")
	if err != nil {
		return err
	}
	if said := string(out); !strings.Contains(said, v.version.String()+" ") || !strings.Contains(said, v.commit) {
		return differs("the plugin has the version " + strings.TrimSpace(said))
	}
	return nil
}

// krewDifferences returns a line for each archive that differs from the manifest for krew.
func krewDifferences(manifest krewPlugin, version Version, files sums) []string {
	named := sums{}
	for _, p := range manifest.Spec.Platforms {
		named[p.URI[strings.LastIndex(p.URI, "/")+1:]] = p.SHA256
	}
	archives := sums{}
	for name, sum := range files {
		if strings.HasPrefix(name, images.Plugin) && !strings.HasSuffix(name, sbomExtension) {
			archives[name] = sum
		}
	}
	lines := archives.differences(named)
	if manifest.Spec.Version != version.Tag() {
		lines = append(lines, "the manifest is about version "+manifest.Spec.Version)
	}
	return lines
}

// sbom is what is read of an SBOM.
type sbom struct {
	Packages []struct {
		SPDXID    string `json:"SPDXID"` //nolint:tagliatelle // SPDX names it so.
		Checksums []struct {
			Value string `json:"checksumValue"`
		} `json:"checksums"`
	} `json:"packages"`
}

// program returns the checksum of the program that an SBOM describes.
func (s sbom) program() string {
	for _, p := range s.Packages {
		if p.SPDXID == "SPDXRef-Program" && len(p.Checksums) == 1 {
			return p.Checksums[0].Value
		}
	}
	return ""
}

// sboms compares the SBOM of each program with the program in its image or archive.
func (v verifier) sboms(all []stored) error {
	manifest, err := v.krew()
	if err != nil {
		return err
	}
	var problems []error
	for _, p := range manifest.Spec.Platforms {
		platform := v1.Platform{OS: p.Selector.MatchLabels["os"], Architecture: p.Selector.MatchLabels["arch"]}
		packed, err := os.ReadFile(v.path(archiveName(v.version, platform)))
		if err != nil {
			return fmt.Errorf("reading an archive: %w", err)
		}
		body, err := extract(packed, pluginFile(platform))
		problems = append(problems, err, describes(v.path(platformName(images.Plugin, v.version, platform)+sbomExtension), body))
	}
	for _, one := range all {
		index, ok := one.content.(v1.ImageIndex)
		if !ok {
			continue
		}
		problems = append(problems, v.imageSBOMs(filepath.Base(one.repository), index))
	}
	return errors.Join(problems...)
}

// imageSBOMs compares the SBOMs of the images of an index with their programs.
func (v verifier) imageSBOMs(program string, index v1.ImageIndex) error {
	manifest, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("reading an index: %w", err)
	}
	for _, d := range manifest.Manifests {
		image, err := index.Image(d.Digest)
		if err != nil {
			return fmt.Errorf("reading an image: %w", err)
		}
		files := mutate.Extract(image)
		body, err := fromTar(files, program)
		if err := errors.Join(err, files.Close()); err != nil {
			return err
		}
		if err := describes(v.path(platformName(program, v.version, *d.Platform)+sbomExtension), body); err != nil {
			return err
		}
	}
	return nil
}

// describes compares the program that the SBOM in a file describes with a program.
func describes(file string, body []byte) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading an SBOM: %w", err)
	}
	list, err := decode[sbom](text)
	if err != nil {
		return fmt.Errorf("reading the SBOM %s: %w", filepath.Base(file), err)
	}
	if list.program() != checksum(body) {
		return differs("the SBOM " + filepath.Base(file) + " describes another program")
	}
	return nil
}

// extract returns a file of an archive: tar with gzip, or zip.
func extract(packed []byte, name string) ([]byte, error) {
	if bytes.HasPrefix(packed, []byte("PK")) {
		files, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
		if err != nil {
			return nil, fmt.Errorf("reading an archive: %w", err)
		}
		file, err := files.Open(name)
		if err != nil {
			return nil, fmt.Errorf("reading an archive: %w", err)
		}
		return io.ReadAll(file)
	}
	files, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("reading an archive: %w", err)
	}
	return fromTar(files, name)
}

// fromTar returns a file of a tar archive.
func fromTar(archive io.Reader, name string) ([]byte, error) {
	for files := tar.NewReader(archive); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: %w", name, errNoFile)
		}
		if err != nil {
			return nil, fmt.Errorf("reading an archive: %w", err)
		}
		if header.Name == name {
			return io.ReadAll(files)
		}
	}
}
