package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/chandlery/chandlery/bundles/image/layer"
	"github.com/chandlery/chandlery/deploy/images"
)

// repository is the repository of the source.
const repository = "https://github.com/chandlery/chandlery"

const (
	// imagesDir and signaturesDir are OCI layouts.
	imagesDir     = "images"
	signaturesDir = "signatures"
	sumsFile      = "SHA256SUMS"
	notesFile     = "RELEASE_NOTES.md"
	// sbomExtension is the extension of SPDX documents in JSON.
	sbomExtension = ".spdx.json"
	// incompleteExtension ends the name of the folder of a release until the release is complete.
	incompleteExtension = ".incomplete"
)

// Source is the commit from which a release is built.
type Source struct {
	// Dir is the root of the checkout.
	Dir string
	// Commit is the hash of the commit.
	Commit string
	// Created is the time of all files.
	Created time.Time
	// Go is the version of Go that builds, such as go1.26.3.
	Go string
}

// Options select what [Build] builds.
type Options struct {
	Source

	Version Version
	// Images is the host, with a prefix or without, to whose registry the images are pushed later.
	Images string
	// Downloads is the URL from which users will download the files of the release.
	Downloads string
	// Builder is the URI of the machine or the workflow that builds.
	Builder string
	// Signer signs the release; nil for a key that is deleted afterwards, which proves nothing to users.
	Signer *Signer
	// Platforms are those of the images, and PluginPlatforms those of the kubectl plugin; empty for all.
	Platforms, PluginPlatforms []v1.Platform
	// Fast compresses programs in a tenth of the time, to larger files. It is for releases that are not published.
	Fast bool
}

// builder builds one release.
type builder struct {
	Options

	tools Tools
	// out is the folder of the release until it is complete, and scratch a folder for other files.
	out, scratch string
	progress     io.Writer
}

var errOtherFiles = errors.New("the folder holds other files than a release; name another one")

// Build makes a release in a folder, and replaces an earlier release there. It writes what it does to progress.
func Build(ctx context.Context, dir string, o Options, tools Tools, progress io.Writer) error {
	if len(o.Platforms) == 0 {
		o.Platforms = images.Platforms()
	}
	if len(o.PluginPlatforms) == 0 {
		o.PluginPlatforms = pluginPlatforms()
	}
	if err := replaceable(dir); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "chandlery-release-")
	if err != nil {
		return fmt.Errorf("making a folder for temporary files: %w", err)
	}
	// An incomplete release never has the name of a release.
	b := builder{Options: o, tools: tools, out: filepath.Clean(dir) + incompleteExtension, scratch: scratch, progress: progress}
	if err := errors.Join(b.build(ctx), os.RemoveAll(scratch)); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dir), os.Rename(b.out, dir)); err != nil {
		return fmt.Errorf("moving the release to its folder: %w", err)
	}
	return nil
}

// replaceable returns an error if a folder holds other files than a release.
func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, sumsFile))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", dir, errors.Join(errOtherFiles, err))
	}
	return nil
}

func (b builder) build(ctx context.Context) error {
	started := time.Now()
	if err := errors.Join(os.RemoveAll(b.out), os.MkdirAll(b.out, 0o755)); err != nil { //nolint:gosec // Everybody may read a release.
		return fmt.Errorf("making the folder of the release: %w", err)
	}
	installed, err := b.images(ctx)
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context, map[string]reference) error{b.chart, b.writeManifests, b.plugins, b.notes} {
		if err := step(ctx, installed); err != nil {
			return err
		}
	}
	files, err := checksums(os.DirFS(b.out), isReproducible)
	if err != nil {
		return err
	}
	if err := b.write(sumsFile, files.text()); err != nil {
		return err
	}
	return b.sign(ctx, files, started)
}

// images builds the images and writes them with their SBOMs. It returns the references of the images by name.
func (b builder) images(ctx context.Context) (map[string]reference, error) {
	b.report("building images")
	all, err := images.Build(ctx, b.imageOptions())
	if err != nil {
		return nil, err //nolint:wrapcheck // says what it does
	}
	dir := filepath.Join(b.out, imagesDir)
	if err := images.WriteLayout(dir, all, []string{b.Version.String()}); err != nil {
		return nil, err //nolint:wrapcheck // names the folder
	}
	installed := map[string]reference{}
	for _, image := range all {
		digest, err := image.Index.Digest()
		if err != nil {
			return nil, fmt.Errorf("reading the digest of %s: %w", image.Name, err)
		}
		installed[image.Name] = reference{b.Images + "/" + image.Name, digest.String()}
		for _, p := range image.Platforms {
			text, err := p.SBOMText()
			if err != nil {
				return nil, err //nolint:wrapcheck // says what it does
			}
			if err := b.write(platformName(filepath.Base(image.Name), b.Version, p.Platform)+sbomExtension, text); err != nil {
				return nil, err
			}
		}
	}
	return installed, nil
}

func (b builder) imageOptions() images.Options {
	return images.Options{
		Dir: b.Dir, Version: b.Version.String(), Commit: b.Commit, Created: b.Created, Platforms: b.Platforms, Fast: b.Fast,
	}
}

// chart writes the chart as a file and into the layout of the images.
func (b builder) chart(_ context.Context, installed map[string]reference) error {
	b.report("packaging the chart")
	files, err := releaseChart(os.DirFS(filepath.Join(b.Dir, "deploy", "chart")), b.Version, installed)
	if err != nil {
		return err
	}
	packed, err := files.archive(b.Created)
	if err != nil {
		return err
	}
	image, err := files.image(packed, b.Version, b.Created)
	if err != nil {
		return err
	}
	dir, err := layout.FromPath(filepath.Join(b.out, imagesDir))
	if err != nil {
		return fmt.Errorf("adding the chart to the images: %w", err)
	}
	if err := dir.AppendImage(image, layout.WithAnnotations(map[string]string{refName: chartImage + ":" + b.Version.String()})); err != nil {
		return fmt.Errorf("adding the chart to the images: %w", err)
	}
	return b.write(chartFile(b.Version), packed)
}

// writeManifests writes the manifests.
func (b builder) writeManifests(ctx context.Context, installed map[string]reference) error {
	b.report("rendering manifests")
	manifests, err := b.manifests(ctx, installed)
	if err != nil {
		return err
	}
	for name, manifest := range manifests {
		if err := b.write(name, manifest); err != nil {
			return err
		}
	}
	return nil
}

// plugins writes the archives of the kubectl plugin with their SBOMs, and the manifest for krew.
func (b builder) plugins(ctx context.Context, _ map[string]reference) error {
	archives := sums{}
	for _, platform := range b.PluginPlatforms {
		b.report("building the kubectl plugin for " + platform.String())
		body, sbom, err := b.imageOptions().BuildPlugin(ctx, platform)
		if err != nil {
			return err //nolint:wrapcheck // says what it does
		}
		packed, err := b.archive(platform, body)
		if err != nil {
			return err
		}
		name := archiveName(b.Version, platform)
		archives[name] = checksum(packed)
		if err := errors.Join(b.write(name, packed), b.write(platformName(images.Plugin, b.Version, platform)+sbomExtension, sbom)); err != nil {
			return err
		}
	}
	manifest, err := krewManifest(b.Version, b.Downloads, b.PluginPlatforms, archives)
	if err != nil {
		return err
	}
	return b.write(krewFile, manifest)
}

// archive returns the archive of the plugin for a platform.
func (b builder) archive(platform v1.Platform, body []byte) ([]byte, error) {
	license, err := os.ReadFile(filepath.Join(b.Dir, "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("reading the license: %w", err)
	}
	files := []layer.Entry{layer.Program(pluginFile(platform), body), layer.File("LICENSE", license)}
	if platform.OS != windows {
		const completion = "kubectl_complete-chandlery"
		script, err := os.ReadFile(filepath.Join(b.Dir, "cmd", images.Plugin, completion))
		if err != nil {
			return nil, fmt.Errorf("reading the completion of the plugin: %w", err)
		}
		files = append(files, layer.Program(completion, script))
	}
	if b.Fast {
		return archive(platform, files, b.Created, layer.NewFast)
	}
	return archive(platform, files, b.Created, layer.New)
}

// notes writes the release notes.
func (b builder) notes(context.Context, map[string]reference) error {
	changelog, err := os.ReadFile(filepath.Join(b.Dir, "CHANGELOG.md"))
	if err != nil {
		return fmt.Errorf("reading the changes: %w", err)
	}
	text, err := notes(string(changelog), b.Version)
	if err != nil {
		return err
	}
	return b.write(notesFile, []byte(text))
}

// chartFile returns the name of the chart's archive, as helm names it.
func chartFile(version Version) string { return chartName + "-" + version.String() + ".tgz" }

// write writes a file of the release.
func (b builder) write(name string, body []byte) error {
	if err := os.WriteFile(filepath.Join(b.out, name), body, 0o644); err != nil { //nolint:gosec // Everybody may read a release.
		return fmt.Errorf("writing a file of the release: %w", err)
	}
	return nil
}

func (b builder) report(doing string) { fmt.Fprintln(b.progress, "release: "+doing) }
