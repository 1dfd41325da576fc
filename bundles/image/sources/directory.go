package sources

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/chandlery/chandlery/bundles/image"
)

// Paths names files and directories with settings; each may be empty.
type Paths struct {
	// Config is a directory where a ConfigMap with the keys of [Parse] is mounted.
	Config string
	// RegistriesConf is a registries.conf, or a directory with a registries.conf and drop-ins in registries.conf.d.
	RegistriesConf string
	// CertsDirs are directories as /etc/containerd/certs.d and /etc/docker/certs.d. For each registry, the first
	// one with its folder counts.
	CertsDirs []string
	// CA is a file with certificates to trust for all registries.
	CA string
}

// IsZero reports whether there are no settings.
func (p *Paths) IsZero() bool {
	return p.Config == "" && p.RegistriesConf == "" && len(p.CertsDirs) == 0 && p.CA == ""
}

// Limits of the input from files.
const (
	maxFileBytes = 4 << 20
	maxFiles     = 4096
)

var (
	errLongFile  = fmt.Errorf("is larger than %d bytes", maxFileBytes)
	errManyFiles = fmt.Errorf("has more than %d files", maxFiles)
)

// Files keeps the rules of files current. A change counts for the next image. If a change is invalid, the last valid
// rules stay in force. It is safe for concurrent use.
type Files struct {
	paths Paths

	mu    sync.Mutex
	sum   [sha256.Size]byte
	table *Table
	err   error
	// named are the files that hosts.toml files name.
	named []string
}

// NewFiles returns the rules of files, which it does not read yet.
func NewFiles(paths Paths) *Files { return &Files{paths: paths} }

// Table returns the rules in force; nil if there have never been valid ones. The error says why the current
// content of the files cannot be used.
func (f *Files) Table() (*Table, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	content, err := readPaths(&f.paths)
	if err != nil {
		f.err, f.sum = err, [sha256.Size]byte{}
		return f.table, f.err
	}
	if sum := content.sum(f.named); sum == f.sum {
		return f.table, f.err
	}
	table, named, err := content.parse(&f.paths)
	if f.err = err; err == nil {
		f.table = table
	}
	f.named = named
	f.sum = content.sum(named)
	return f.table, f.err
}

// Route returns the sources of an image.
func (f *Files) Route(ref name.Reference) (image.Route, error) {
	table, err := f.Table()
	if table == nil {
		return image.Route{}, err
	}
	return Tables{table}.Route(ref)
}

// content is the content of all files.
type content struct {
	// keys are the keys of the mounted ConfigMap.
	keys       map[string][]byte
	registries []file
	// hosts are the files of the folders of certs.d, by folder.
	hosts map[string]map[string][]byte
	// dirs are the directories of these folders.
	dirs map[string]string
	ca   []byte
}

// sum returns a checksum of everything, with further files that are named in it.
func (c *content) sum(named []string) [sha256.Size]byte {
	hash := sha256.New()
	add := func(name string, data []byte) { fmt.Fprintf(hash, "%q %d\n%s", name, len(data), data) }
	for _, key := range slices.Sorted(maps.Keys(c.keys)) {
		add(key, c.keys[key])
	}
	for _, f := range c.registries {
		add(f.name, f.data)
	}
	for _, folder := range slices.Sorted(maps.Keys(c.hosts)) {
		for _, name := range slices.Sorted(maps.Keys(c.hosts[folder])) {
			add(filepath.Join(c.dirs[folder], name), c.hosts[folder][name])
		}
	}
	add("ca", c.ca)
	for _, name := range named {
		data, err := readFile(name)
		add(name, append(data, fmt.Sprint(err)...))
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// parse returns the rules, and the files that hosts.toml files name.
func (c *content) parse(paths *Paths) (table *Table, named []string, err error) {
	p := newParser()
	p.keys(paths.Config, c.keys)
	p.registries = append(p.registries, c.registries...)
	for _, folder := range slices.Sorted(maps.Keys(c.hosts)) {
		p.folder(folder, c.dirs[folder], c.hosts[folder])
	}
	if paths.CA != "" {
		p.roots(paths.CA, c.ca)
	}
	table, err = p.finish()
	return table, p.named, err
}

// folder parses a folder of certs.d. If it has a hosts.toml, that names the certificates.
func (p *parser) folder(folder, dir string, files map[string][]byte) {
	host := hostOfFolder(folder)
	if data, ok := files[hostsFileName]; ok {
		p.hosts(host, file{filepath.Join(dir, hostsFileName), data}, func(name string) ([]byte, error) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(dir, name)
			}
			p.named = append(p.named, name)
			return readFile(name)
		})
		return
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		place := filepath.Join(dir, name)
		base := strings.TrimSuffix(name, filepath.Ext(name))
		switch filepath.Ext(name) {
		case ".crt":
			p.hostRoots(place, host, files[name])
		case ".cert":
			if files[base+".key"] == nil {
				p.fail(place, "the other half of the client certificate is missing", "add "+base+".key")
				continue
			}
			p.pair(place, host, files[name], files[base+".key"])
		case ".key":
			if files[base+".cert"] == nil {
				p.fail(place, "the other half of the client certificate is missing", "add "+base+".cert")
			}
		}
	}
}

// hostOfFolder returns the registry of a folder of certs.d.
func hostOfFolder(folder string) string {
	if folder == defaultHost {
		return folder
	}
	if host, port, found := strings.Cut(strings.TrimSuffix(folder, "_"), "_"); found && strings.HasSuffix(folder, "_") {
		return normalHost(host + ":" + port)
	}
	return normalHost(folder)
}

// readPaths reads all files.
func readPaths(paths *Paths) (*content, error) {
	c := &content{hosts: map[string]map[string][]byte{}, dirs: map[string]string{}}
	var err error
	if paths.Config != "" {
		if c.keys, err = readDir(paths.Config); err != nil {
			return nil, err
		}
	}
	if paths.RegistriesConf != "" {
		if c.registries, err = readRegistries(paths.RegistriesConf); err != nil {
			return nil, err
		}
	}
	for _, dir := range paths.CertsDirs {
		if err := c.readCerts(dir); err != nil {
			return nil, err
		}
	}
	if paths.CA != "" {
		if c.ca, err = readFile(paths.CA); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// readRegistries reads a registries.conf, or the files in a directory.
func readRegistries(path string) ([]file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if !info.IsDir() {
		data, err := readFile(path)
		return []file{{path, data}}, err
	}
	var all []file
	main := filepath.Join(path, keyRegistries)
	switch data, err := readFile(main); {
	case err == nil:
		all = append(all, file{main, data})
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	dropIns := main + ".d"
	files, err := readDir(dropIns)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, base := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(base, ".conf") {
			all = append(all, file{filepath.Join(dropIns, base), files[base]})
		}
	}
	if len(all) == 0 {
		return nil, &InvalidError{
			File: path, Problem: "has neither registries.conf nor registries.conf.d", Remedy: "name the file, or a directory as /etc/containers",
		}
	}
	return all, nil
}

// readCerts reads the folders of a certs.d.
func (c *content) readCerts(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return unreadable(dir, err)
	}
	if len(entries) > maxFiles {
		return unreadable(dir, errManyFiles)
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if _, known := c.hosts[entry.Name()]; known || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			continue
		}
		if c.hosts[entry.Name()], err = readDir(path); err != nil {
			return err
		}
		c.dirs[entry.Name()] = path
	}
	return nil
}

// ReadDir returns the files in a directory by name, except hidden ones: a mounted ConfigMap has such. Their number and
// sizes are limited. The error is an [*InvalidError].
func ReadDir(dir string) (map[string][]byte, error) { return readDir(dir) }

func readDir(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, unreadable(dir, err)
	}
	if len(entries) > maxFiles {
		return nil, unreadable(dir, errManyFiles)
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if info, err := os.Stat(path); strings.HasPrefix(entry.Name(), ".") || err == nil && info.IsDir() {
			continue
		}
		if files[entry.Name()], err = readFile(path); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func readFile(path string) ([]byte, error) {
	opened, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer opened.Close() //nolint:errcheck // nothing was written
	var data bytes.Buffer
	n, err := io.Copy(&data, io.LimitReader(opened, maxFileBytes+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	if n > maxFileBytes {
		return nil, unreadable(path, errLongFile)
	}
	return data.Bytes(), nil
}

// unreadableError is a file or directory that cannot be read.
type unreadableError struct {
	*InvalidError

	err error
}

// Unwrap returns the cause.
func (u *unreadableError) Unwrap() error { return u.err }

func unreadable(path string, err error) error {
	cause := err
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		cause = failed.Err
	}
	remedy := "check the path and its permissions"
	switch {
	case errors.Is(err, errLongFile):
		remedy = "shorten it"
	case errors.Is(err, errManyFiles):
		remedy = "remove some"
	}
	return &unreadableError{&InvalidError{File: path, Problem: cause.Error(), Remedy: remedy}, err}
}
