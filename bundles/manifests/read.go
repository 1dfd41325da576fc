package manifests

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/chandlery/chandlery/bundles"
)

// Limits bound the content of a bundle. The zero value of a field means its default.
type Limits struct {
	// MaxFiles is the largest number of files.
	MaxFiles int
	// MaxFileBytes is the largest size of a file.
	MaxFileBytes int64
	// MaxObjects is the largest number of objects, and MaxBytes the largest size of
	// them together, as JSON.
	MaxObjects, MaxBytes int
	// MaxObjectBytes is the largest size of an object, as JSON.
	MaxObjectBytes int
}

// The defaults of [Limits]. An object must fit into one request to etcd, whose limit is 1.5 MiB. As
// YAML it may be several times as long.
const (
	DefaultMaxFiles       = 2000
	DefaultMaxFileBytes   = 16 << 20
	DefaultMaxObjects     = 2000
	DefaultMaxBytes       = 64 << 20
	DefaultMaxObjectBytes = 3 << 19
)

func (l Limits) withDefaults() Limits {
	l.MaxFiles = cmp.Or(l.MaxFiles, DefaultMaxFiles)
	l.MaxFileBytes = cmp.Or(l.MaxFileBytes, DefaultMaxFileBytes)
	l.MaxObjects = cmp.Or(l.MaxObjects, DefaultMaxObjects)
	l.MaxBytes = cmp.Or(l.MaxBytes, DefaultMaxBytes)
	l.MaxObjectBytes = cmp.Or(l.MaxObjectBytes, DefaultMaxObjectBytes)
	return l
}

// Read reads the manifests of a bundle, the files directly below root: each object as compact JSON,
// the ClusterServiceVersion first and the others in the order of the files' names, and of the
// documents in a file. Files may be YAML or JSON and hold any number of objects. If a mapping
// repeats a key, the last value counts. The JSON repeats the key, too, so its readers can warn.
//
// Subdirectories, files whose names begin with a dot and files without Kubernetes objects are
// ignored, as other bundle tools do. Files with the suffix .yaml, .yml or .json must hold objects.
//
// The error is [bundles.Problems] with all problems of the bundle.
func Read(root fs.FS, limits Limits) ([]string, error) {
	r := &reader{root: root, limits: limits.withDefaults()}
	r.files()
	if len(r.problems) == 0 {
		r.complete()
	}
	if err := r.problems.OrNil(); err != nil {
		return nil, err
	}
	texts := make([]string, 0, len(r.objects))
	texts = append(texts, r.objects[r.csv].text)
	for i := range r.objects {
		if i != r.csv {
			texts = append(texts, r.objects[i].text)
		}
	}
	return texts, nil
}

// reader collects the objects of a bundle.
type reader struct {
	root     fs.FS
	limits   Limits
	objects  []manifest
	size     int
	csv      int
	problems bundles.Problems
	// full is set if a limit of the whole bundle is exceeded.
	full bool
}

// manifest is an object of Kubernetes.
type manifest struct {
	head

	text string
	// place is the file and the first line.
	place string
}

// head holds the fields that every object has.
type head struct {
	apiVersion, kind, name string
}

func (h *head) String() string { return h.kind + " " + bundles.Quote(h.name) }

func (r *reader) problemf(place, remedy, format string, args ...any) {
	r.problems = append(r.problems, bundles.Problem{File: place, Message: fmt.Sprintf(format, args...), Remedy: remedy})
}

// overflowf reports an exceeded limit of the whole bundle.
func (r *reader) overflowf(format string, args ...any) {
	r.full = true
	r.problemf("", "remove what the operator does not need from the bundle", format, args...)
}

func (r *reader) files() {
	entries, err := fs.ReadDir(r.root, ".")
	if err != nil {
		r.problems = append(r.problems, bundles.Problem{Message: "listing the manifests: " + err.Error(), Unreadable: true})
		return
	}
	if len(entries) > r.limits.MaxFiles {
		r.overflowf("has %d files, at most %d are allowed", len(entries), r.limits.MaxFiles)
		return
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || strings.HasPrefix(name, ".") {
			continue
		}
		r.file(name)
		if r.full {
			return
		}
	}
}

// isManifest reports whether a file must hold objects, by its name.
func isManifest(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	default:
		return false
	}
}

func (r *reader) file(name string) {
	text, err := r.text(name)
	if err == nil {
		err = documents(text, r.limits.MaxObjectBytes, func(line int, object []byte) error {
			r.document(name, line, object)
			if r.full {
				return errFull
			}
			return nil
		})
	}
	if err == nil || errors.Is(err, errFull) || errors.Is(err, errNoFile) || !isManifest(name) {
		return
	}
	if wrong, ok := errors.AsType[*syntaxError](err); ok {
		r.problemf(at(name, wrong.line), wrong.remedy, "%v", wrong)
		return
	}
	if large, ok := errors.AsType[*sizeError](err); ok {
		r.problemf(name, remedyLong, "%v", large)
		return
	}
	r.problems = append(r.problems, bundles.Problem{File: name, Message: err.Error(), Unreadable: true})
}

var (
	errFull   = errors.New("the bundle is too large")
	errNoFile = errors.New("is no file")
)

// sizeError means that a file is too large. It names the likely kind of the content.
type sizeError struct {
	content     string
	size, limit int64
}

func (e *sizeError) Error() string {
	return fmt.Sprintf("%s is too large: the file has %d bytes, at most %d are allowed", e.content, e.size, e.limit)
}

// text reads a file. It follows links.
func (r *reader) text(name string) ([]byte, error) {
	file, err := r.root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("opening manifest: %w", err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("opening manifest: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	limit := r.limits.MaxFileBytes
	if info.Size() > limit {
		start, err := io.ReadAll(io.LimitReader(file, guessBytes))
		if err != nil {
			return nil, fmt.Errorf("reading manifest: %w", err)
		}
		return nil, &sizeError{guess(start), info.Size(), limit}
	}
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading manifest: %w", err)
	}
	if int64(len(text)) > limit {
		return nil, &sizeError{guess(text), int64(len(text)), limit}
	}
	return text, nil
}

// at returns the position of a line in a file.
func at(name string, line int) string { return fmt.Sprintf("%s:%d", name, line) }

// document adds the object that a document holds.
func (r *reader) document(name string, line int, text []byte) {
	place := at(name, line)
	found, isObject, err := identify(text)
	if err != nil {
		if isManifest(name) {
			r.problemf(place, "correct the manifest", "%v", err)
		}
		return
	}
	if !isObject {
		return
	}
	if r.incomplete(place, &found) {
		return
	}
	switch {
	case len(text) > r.limits.MaxObjectBytes:
		r.problemf(place, "shorten or split it: etcd does not store objects that are larger",
			"%s has %d bytes as JSON, at most %d can be stored", &found, len(text), r.limits.MaxObjectBytes)
	case len(r.objects) >= r.limits.MaxObjects:
		r.overflowf("has more than %d objects", r.limits.MaxObjects)
	case len(text) > r.limits.MaxBytes-r.size:
		r.overflowf("its objects have more than %d bytes as JSON", r.limits.MaxBytes)
	default:
		r.size += len(text)
		r.objects = append(r.objects, manifest{head: found, text: string(text), place: place})
	}
}

// incomplete reports whether an object lacks a field that every object has, and adds the problem.
func (r *reader) incomplete(place string, found *head) bool {
	switch {
	case found.kind == "" && strings.HasPrefix(found.apiVersion, csvGroup+"/"):
		r.problemf(place, "add the kind "+csvKind, "bundle CSV %s missing Kind", found.name)
	case found.kind == csvKind && found.apiVersion == "":
		r.problemf(place, "add the apiVersion "+csvVersion, "bundle CSV %s missing APIVersion", found.name)
	case found.kind == "":
		r.problemf(place, "add the kind of the object", "an object of %s lacks kind", bundles.Quote(found.apiVersion))
	case found.apiVersion == "":
		r.problemf(place, "add the apiVersion", "%s lacks apiVersion", found)
	case found.name == "":
		r.problemf(place, "add metadata.name", "an object of kind %s lacks metadata.name", bundles.Quote(found.kind))
	default:
		return false
	}
	return true
}

// identify decodes the fields that every object has. A value with neither kind nor apiVersion is
// not a Kubernetes object.
func identify(text []byte) (found head, isObject bool, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return head{}, false, nil // a list or a scalar is not an object
	}
	str := func(in map[string]json.RawMessage, key, path string, to *string) {
		if value, ok := in[key]; ok && json.Unmarshal(value, to) != nil && err == nil {
			err = fmt.Errorf("%s %w", path, errNoString)
		}
	}
	str(fields, "apiVersion", "apiVersion", &found.apiVersion)
	str(fields, "kind", "kind", &found.kind)
	var metadata map[string]json.RawMessage
	if found.kind == "" && found.apiVersion == "" {
		return found, false, err
	}
	if value, ok := fields["metadata"]; ok && json.Unmarshal(value, &metadata) != nil && err == nil {
		err = errNoMetadata
	}
	str(metadata, "name", "metadata.name", &found.name)
	return found, true, err
}

var (
	errNoString   = errors.New("is no string")
	errNoMetadata = errors.New("metadata is no object")
)

// complete checks the whole bundle and finds its ClusterServiceVersion.
func (r *reader) complete() {
	r.csv = -1
	for i := range r.objects {
		one := &r.objects[i]
		if one.kind != csvKind {
			continue
		}
		if r.csv >= 0 {
			first := &r.objects[r.csv]
			r.problemf(one.place, "leave one of them: a bundle is one version of an operator",
				"%s is a second ClusterServiceVersion beside %s in %s", one, &first.head, first.place)
			continue
		}
		r.csv = i
	}
	switch {
	case len(r.objects) == 0:
		r.problemf("", "put the manifests of the operator there, or have the image's label name the directory that they are in", "holds no manifests: it is no bundle")
	case r.csv < 0:
		r.problemf("", "add the ClusterServiceVersion of the operator", "has no ClusterServiceVersion among its %d objects", len(r.objects))
	}
}
