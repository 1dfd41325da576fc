package buildcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// RootVariable is the environment variable that overrides the cache root.
const RootVariable = "CHANDLERY_CACHE"

// modulePath is the module whose checkout SourceDir finds.
const modulePath = "github.com/chandlery/chandlery"

// Root returns the absolute path of the cache root: $CHANDLERY_CACHE, or a folder named chandlery
// in the user's cache folder. It may not exist yet.
func Root() (string, error) {
	if dir := os.Getenv(RootVariable); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("resolve $%s (%s): %w", RootVariable, dir, err)
		}

		return abs, nil
	}

	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for the cache (set $%s to choose one): %w", RootVariable, err)
	}

	return filepath.Join(dir, "chandlery"), nil
}

// SourceDir returns the absolute path of rel, a slash-separated path in the checkout of this
// repository that contains the working directory. Tests and `go run` always start in one.
func SourceDir(rel string) (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}

	for dir := wd; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && modfile.ModulePath(data) == modulePath {
			return filepath.Join(dir, filepath.FromSlash(rel)), nil
		}

		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("find the checkout: %w", err)
		}

		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a checkout of %s: run from one", wd, modulePath)
		}
	}
}

// Required returns the version at which the go.mod in dir requires module.
func Required(dir, module string) (string, error) {
	name := filepath.Join(dir, "go.mod")

	data, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("find the version of %s: %w", module, err)
	}

	file, err := modfile.ParseLax(name, data, nil)
	if err != nil {
		return "", fmt.Errorf("find the version of %s: %w", module, err)
	}

	for _, r := range file.Require {
		if r.Mod.Path == module {
			return r.Mod.Version, nil
		}
	}

	return "", fmt.Errorf("find the version of %s: %s does not require it", module, name)
}
