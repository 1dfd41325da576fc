package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/server"
	"github.com/chandlery/chandlery/server/source"
)

// sourceFlags are the flags that say how content is read. Every command that
// reads a catalog takes them, so that an argument means the same to all.
type sourceFlags struct {
	allowEmpty bool

	cacheDir string
	// cacheOnly asks to fill the cache and end instead of serving.
	cacheOnly bool
	// cacheEnforceIntegrity is accepted for those who come from opm: what a
	// cache says is always checked, and made anew when it is wrong.
	cacheEnforceIntegrity bool

	pullSecrets   []string
	platform      string
	poll          time.Duration
	pullTimeout   time.Duration
	useHTTP       bool
	skipTLSVerify bool
	registryCA    string
	maxImageSize  byteSize
}

// AddFlags adds the flags to a set.
func (o *sourceFlags) AddFlags(flags *pflag.FlagSet) {
	o.addCacheFlags(flags)
	flags.BoolVar(&o.allowEmpty, "allow-empty", false, "accept a catalog without any package")
	flags.StringSliceVar(&o.pullSecrets, "pull-secret", nil,
		"file of type dockerconfigjson with credentials for registries, or the directory that such a Secret "+
			"is mounted at; may be repeated; without one the docker configuration of the user counts")
	flags.StringVar(&o.platform, "platform", "",
		"platform of the image to read, as os/architecture; by default that of this program where the image has it")
	flags.DurationVar(&o.poll, "poll", 5*time.Minute,
		"time between two looks at what the tag of an image points to; 0 for never")
	flags.DurationVar(&o.pullTimeout, "pull-timeout", 10*time.Minute, "time that reading an image may take, with all attempts")
	flags.BoolVar(&o.useHTTP, "use-http", false, "talk to the registry of the image over plain HTTP")
	flags.BoolVar(&o.skipTLSVerify, "skip-tls-verify", false, "accept any certificate from the registry of the image")
	flags.StringVar(&o.registryCA, "registry-ca", "",
		"file with certificates (PEM) of authorities to trust besides those of the system")
	o.maxImageSize = 4 << 30
	flags.Var(&o.maxImageSize, "max-image-size",
		"largest size of an image's catalog, and of its layers as they are transferred, in bytes or as 512Mi, 4Gi")
}

// addCacheFlags adds what "opm serve" has to say about its cache.
func (o *sourceFlags) addCacheFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.cacheDir, "cache-dir", "",
		"directory to keep what was read in, for a faster start; what is missing or stale in it is made anew")
	flags.BoolVar(&o.cacheOnly, "cache-only", false, "fill the cache directory and end")
	flags.BoolVar(&o.cacheEnforceIntegrity, "cache-enforce-integrity", false,
		"accepted for the sake of compatibility: a cache is always checked, and never a reason to fail")
}

// check reports flags whose values are of no use.
func (o *sourceFlags) check() error {
	if o.poll < 0 {
		return fmt.Errorf("--poll %w, found %s", errNegative, o.poll)
	}
	if o.pullTimeout < 0 {
		return fmt.Errorf("--pull-timeout %w, found %s", errNegative, o.pullTimeout)
	}
	return nil
}

var errNoMedium = errors.New("is neither a directory nor an index file")

// open finds out what an argument names: "oci:REFERENCE", "oci-layout:DIR",
// "configmap:DIR", an index file or a directory. It reads nothing but the kind
// of the file.
func (o *sourceFlags) open(argument string, _ *slog.Logger) (server.Source, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	for _, prefix := range []string{"oci:", "oci-layout:", "configmap:"} {
		if strings.HasPrefix(argument, prefix) {
			return nil, fmt.Errorf("opening %q: %w", argument, errors.ErrUnsupported)
		}
	}
	info, err := os.Stat(argument)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("opening catalog: %w", err)
	}
	if err == nil && !info.IsDir() {
		return nil, fmt.Errorf("opening %q: %w", argument, errNoMedium)
	}
	return source.Dir{Path: argument, AllowEmpty: o.allowEmpty}, nil
}
