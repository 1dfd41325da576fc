package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	yamldecoder "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/bundles/fbc"
)

// object is an object of a catalog whose values are not decoded.
type object map[string]json.RawMessage

// treeSize returns the size and the number of a catalog's files.
func treeSize(dir string) (size int64, files int, err error) {
	names, err := fbc.Files(os.DirFS(dir))
	if err != nil {
		return 0, 0, fmt.Errorf("listing the catalog: %w", err)
	}
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return 0, 0, fmt.Errorf("listing the catalog: %w", err)
		}
		size += info.Size()
	}
	return size, len(names), nil
}

// diskSize returns the size of the files below a directory, in bytes.
func diskSize(dir string) (float64, error) {
	total := 0.0
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total += float64(info.Size())
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("measuring %s: %w", dir, err)
	}
	return total, nil
}

// derivedCatalogs derives catalogs from the measured one.
type derivedCatalogs struct{ *bench }

// derive creates another catalog from one, file by file. It uses an existing directory unchanged.
func (b derivedCatalogs) derive(
	ctx context.Context, catalog, name string, convert func(name string, data []byte, target string) error,
) (string, error) {
	target := filepath.Join(b.dir, name)
	if _, err := os.Stat(target); err == nil {
		return target, nil
	}
	b.sayf("making %s", name)
	names, err := fbc.Files(os.DirFS(catalog))
	if err != nil {
		return "", fmt.Errorf("listing the catalog: %w", err)
	}
	temporary := target + ".new"
	if err := errors.Join(os.RemoveAll(temporary), os.MkdirAll(temporary, 0o755)); err != nil {
		return "", fmt.Errorf("making %s: %w", name, err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for _, file := range names {
		group.Go(func() error {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			data, err := os.ReadFile(filepath.Join(catalog, file))
			if err != nil {
				return err
			}
			return convert(file, data, temporary)
		})
	}
	if err := group.Wait(); err != nil {
		return "", fmt.Errorf("making %s: %w", name, err)
	}
	if err := os.Rename(temporary, target); err != nil {
		return "", fmt.Errorf("making %s: %w", name, err)
	}
	return target, nil
}

// objects calls visit for each object of a file, JSON or YAML.
func objects(data []byte, visit func(object) error) error {
	decoder := yamldecoder.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading objects: %w", err)
		}
		if len(o) == 0 {
			continue
		}
		if err := visit(o); err != nil {
			return err
		}
	}
}

// asYAML creates the YAML form of a catalog.
func (b derivedCatalogs) asYAML(ctx context.Context) (string, error) {
	return b.derive(ctx, b.catalog, "catalog-yaml", func(name string, data []byte, target string) error {
		return create(filepath.Join(target, name+".yaml"), func(out io.Writer) error {
			return objects(data, func(o object) error {
				text, err := yaml.Marshal(o)
				if err != nil {
					return fmt.Errorf("writing YAML: %w", err)
				}
				_, err = fmt.Fprintf(out, "---\n%s", text)
				return err
			})
		})
	})
}

// multiplied creates a catalog with several copies of every package under other names.
func (b derivedCatalogs) multiplied(ctx context.Context) (string, error) {
	return b.derive(ctx, b.catalog, fmt.Sprintf("catalog-times-%d", b.copies), func(name string, data []byte, target string) error {
		for i := range b.copies {
			suffix := ""
			if i > 0 {
				suffix = fmt.Sprintf("-copy%d", i)
			}
			err := create(filepath.Join(target, strconv.Itoa(i), name+".json"), func(out io.Writer) error {
				return objects(data, func(o object) error { return writeRenamed(out, o, suffix) })
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// writeRenamed writes an object with a suffix added to the name of its package.
func writeRenamed(out io.Writer, o object, suffix string) error {
	fields := []string{"package"}
	if string(o["schema"]) == `"olm.package"` {
		fields = append(fields, "name")
	}
	for _, field := range fields {
		if err := rename(o, field, suffix); err != nil {
			return err
		}
	}
	if err := renameProperties(o, suffix); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(o)
}

// rename adds a suffix to the text in a field, if there is one.
func rename(o object, field, suffix string) error {
	value, ok := o[field]
	if !ok {
		return nil
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return fmt.Errorf("renaming field %s: %w", field, err)
	}
	if text == "" {
		return nil
	}
	renamed, err := json.Marshal(text + suffix)
	o[field] = renamed
	return err
}

// renameProperties renames the package in the properties of a bundle.
func renameProperties(o object, suffix string) error {
	if o["properties"] == nil {
		return nil
	}
	var properties []object
	if err := json.Unmarshal(o["properties"], &properties); err != nil {
		return fmt.Errorf("renaming properties: %w", err)
	}
	for _, p := range properties {
		if string(p["type"]) != `"olm.package"` {
			continue
		}
		var value object
		if err := json.Unmarshal(p["value"], &value); err != nil {
			return fmt.Errorf("renaming properties: %w", err)
		}
		if err := rename(value, "packageName", suffix); err != nil {
			return err
		}
		changed, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("renaming properties: %w", err)
		}
		p["value"] = changed
	}
	changed, err := json.Marshal(properties)
	o["properties"] = changed
	return err
}

// create writes a file, and the directories above it.
func create(name string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	return errors.Join(write(out), out.Flush(), file.Close())
}

// compactSize returns the size of a catalog as JSON without white space, in bytes.
func compactSize(ctx context.Context, dir string) (float64, error) {
	names, err := fbc.Files(os.DirFS(dir))
	if err != nil {
		return 0, fmt.Errorf("listing the catalog: %w", err)
	}
	total := 0.0
	for _, name := range names {
		if err := context.Cause(ctx); err != nil {
			return 0, err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return 0, fmt.Errorf("reading the catalog: %w", err)
		}
		if err := objects(data, func(o object) error {
			var text strings.Builder
			encoder := json.NewEncoder(&text)
			encoder.SetEscapeHTML(false)
			err := encoder.Encode(o)
			total += float64(text.Len())
			return err
		}); err != nil {
			return 0, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return total, nil
}
