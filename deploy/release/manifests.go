package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	supervisorImage = "chandlery/supervisor"
	registryImage   = "chandlery/registry"

	prerequisitesFile = "prerequisites.yaml"
	installFile       = "install.yaml"
	defaultsFile      = "defaults.yaml"
)

// manifests returns the manifests of a release, by file name.
func (b builder) manifests(ctx context.Context, installed map[string]reference) (map[string][]byte, error) {
	prerequisites, err := b.kustomize(ctx, filepath.Join(b.Dir, "deploy", "prerequisites"))
	if err != nil {
		return nil, err
	}
	product, err := b.product(ctx, installed)
	if err != nil {
		return nil, err
	}
	defaults, err := concatenate(filepath.Join(b.Dir, "deploy", "prerequisites"), "namespace.yaml", "defaults/*.yaml")
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		prerequisitesFile: headed(b.Version, prerequisites, "what is there before the supervisor and stays after it: the kinds of operators.coreos.com and the roles of users.",
			"kubectl apply --server-side -f "+prerequisitesFile+" -f "+installFile),
		installFile: headed(b.Version, product, "the supervisor and what belongs to it alone.",
			"kubectl apply --server-side -f "+prerequisitesFile+" -f "+installFile, "kubectl delete -f "+installFile),
		defaultsFile: headed(b.Version, defaults, "what instructions for OLM expect. For an existing object, kubectl create reports AlreadyExists\n"+
			"# and changes nothing. If namespace operators has an OperatorGroup, remove global-operators from this file:\n"+
			"# two would block every Subscription in the namespace.",
			"kubectl create -f "+defaultsFile),
	}, nil
}

// headed returns a manifest below a comment with its content and with commands.
func headed(version Version, manifest []byte, content string, commands ...string) []byte {
	text := fmt.Appendf(nil, "# Chandlery %s: %s\n#\n", version, content)
	for _, command := range commands {
		text = fmt.Appendf(text, "#   %s\n", command)
	}
	return append(text, manifest...)
}

// product renders deploy/ with the images of a release. A kustomization with deploy/ as its resource must be in another
// folder.
func (b builder) product(ctx context.Context, installed map[string]reference) ([]byte, error) {
	dir := filepath.Join(b.scratch, "product")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("rendering the product: %w", err)
	}
	source := filepath.Join(b.Dir, "deploy")
	settings, err := os.ReadFile(filepath.Join(source, "images.yaml"))
	if err != nil {
		return nil, fmt.Errorf("rendering the product: %w", err)
	}
	// Kustomize accepts only relative paths of links' targets.
	base, err := relative(dir, source)
	if err != nil {
		return nil, err
	}
	kustomization, err := kustomization(base, installed)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{"images.yaml": settings, "kustomization.yaml": kustomization} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, fmt.Errorf("rendering the product: %w", err)
		}
	}
	return b.kustomize(ctx, dir)
}

// relative returns the path from one folder to another one, both without symbolic links.
func relative(from, to string) (string, error) {
	var paths [2]string
	for i, dir := range []string{from, to} {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("finding %s: %w", dir, err)
		}
		if paths[i], err = filepath.EvalSymlinks(absolute); err != nil {
			return "", fmt.Errorf("finding %s: %w", dir, err)
		}
	}
	return filepath.Rel(paths[0], paths[1])
}

// kustomization returns a kustomization that installs a base with images by digest.
func kustomization(base string, installed map[string]reference) ([]byte, error) {
	type image struct {
		Name    string `json:"name"`
		NewName string `json:"newName"`
		Digest  string `json:"digest"`
	}
	var images []image
	for _, name := range slices.Sorted(maps.Keys(installed)) {
		images = append(images, image{name, installed[name].repository, installed[name].digest})
	}
	content, err := yaml.Marshal(map[string]any{"resources": []string{base}, "images": images, "configurations": []string{"images.yaml"}})
	if err != nil {
		return nil, fmt.Errorf("writing a kustomization: %w", err)
	}
	return content, nil
}

// kustomize renders a folder.
func (b builder) kustomize(ctx context.Context, dir string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, b.tools.Kustomize, "build", dir)
	var report bytes.Buffer
	cmd.Stderr = &report
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("kustomize build %s: %w\n%s", dir, err, strings.TrimSpace(report.String()))
	}
	return out, nil
}

var errNoManifest = errors.New("there is no such manifest")

// concatenate returns manifests of a folder, by patterns, as one.
func concatenate(dir string, patterns ...string) ([]byte, error) {
	var documents [][]byte
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			return nil, errors.Join(fmt.Errorf("%s in %s: %w", pattern, dir, errNoManifest), err)
		}
		for _, file := range files {
			document, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("reading a manifest: %w", err)
			}
			documents = append(documents, document)
		}
	}
	return bytes.Join(documents, []byte("---\n")), nil
}
