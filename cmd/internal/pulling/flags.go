// Package pulling holds the flags for pulling images: credentials, platform, trust and limits. They
// mean the same for every program.
package pulling

import (
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/cmd/internal/flaggroup"
)

// Flags configure how images are pulled.
type Flags struct {
	pullSecrets   []string
	platform      string
	timeout       time.Duration
	useHTTP       bool
	skipTLSVerify bool
	paths         sources.Paths
	maxImageSize  ByteSize
}

// AddFlags adds the flags to a set.
func (f *Flags) AddFlags(flags *pflag.FlagSet) {
	f.AddRegistryFlags(flags)
	flaggroup.Add(flags, "pull flags", f.addPullFlags)
}

// addPullFlags adds the flags for reading an image.
func (f *Flags) addPullFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.platform, "platform", "",
		"platform of the image to read, as os/architecture; default: the platform of this program, if the image has it")
	flags.DurationVar(&f.timeout, "pull-timeout", 10*time.Minute, "time limit for reading an image, including all attempts")
	f.maxImageSize = 4 << 30
	flags.Var(&f.maxImageSize, "max-image-size",
		"size limit for the catalog in an image, and for the compressed layers of the image; in bytes or with a unit, such as 512Mi")
}

// AddRegistryFlags adds the flags for the connection to a registry, for commands that pull no image.
func (f *Flags) AddRegistryFlags(flags *pflag.FlagSet) {
	f.timeout, f.maxImageSize = 10*time.Minute, 4<<30
	flaggroup.Add(flags, "image registry flags", f.addRegistryFlags)
}

func (f *Flags) addRegistryFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.pullSecrets, "pull-secret", nil,
		"dockerconfigjson file or mounted Secret with registry credentials; may be repeated; the configuration of docker or podman is tried last")
	flags.BoolVar(&f.useHTTP, "use-http", false, "allow plain HTTP to the image registry")
	flags.BoolVar(&f.skipTLSVerify, "skip-tls-verify", false, "accept any certificate of the image registry")
	flags.StringVar(&f.paths.CA, "registry-ca", "",
		"file with CA certificates (PEM) to trust in addition to the CAs of the system")
	f.paths.AddFlags(flags)
}

// IsSet reports whether one of the flags of [Flags.AddRegistryFlags] is set.
func (f *Flags) IsSet() bool {
	return len(f.pullSecrets) > 0 || f.useHTTP || f.skipTLSVerify || !f.paths.IsZero()
}

// ConfigDir returns the directory with settings; empty for none.
func (f *Flags) ConfigDir() string { return f.paths.Config }

var errNotPositive = errors.New("must be above zero")

// Check returns an error for invalid values.
func (f *Flags) Check() error {
	if f.timeout <= 0 {
		return fmt.Errorf("--pull-timeout %w, found %s", errNotPositive, f.timeout)
	}
	return nil
}

// Options returns the options for the flags. agent is the user agent for registries.
func (f *Flags) Options(agent string) (image.Options, error) {
	options, _, err := f.open(agent)
	return options, err
}

// open returns the options for the flags, and the files with settings; nil if there are none.
func (f *Flags) open(agent string) (image.Options, *sources.Files, error) {
	if err := f.Check(); err != nil {
		return image.Options{}, nil, err
	}
	if err := image.CheckProxies(os.Getenv); err != nil {
		return image.Options{}, nil, err //nolint:wrapcheck // names the variable
	}
	options := image.Options{
		Keychain: image.DefaultKeychain(), Platform: f.platform, PlainHTTP: f.useHTTP, SkipTLSVerify: f.skipTLSVerify,
		PullTimeout: f.timeout, UserAgent: agent,
		Limits: image.Limits{
			MaxBytes: int64(f.maxImageSize), MaxLayerBytes: int64(f.maxImageSize),
			MaxUnpackedBytes: 4 * min(int64(f.maxImageSize), math.MaxInt64/4),
		},
	}
	if len(f.pullSecrets) > 0 {
		options.Keychain = image.Keychains(image.PullSecrets(f.pullSecrets...), options.Keychain)
	}
	if f.paths.IsZero() {
		return options, nil, nil
	}
	files := sources.NewFiles(f.paths)
	if _, err := files.Table(); err != nil {
		return image.Options{}, nil, fmt.Errorf("reading the settings for image registries: %w", err)
	}
	options.Sources.Router = files
	return options, files, nil
}

// Client returns a client that pulls images according to the flags.
func (f *Flags) Client(agent string) (*image.Client, error) {
	client, _, err := f.LongLived(agent)
	return client, err
}

// LongLived returns a client as [Flags.Client] does, and a function that reads its settings for image registries; nil if
// there are none. If the current settings are invalid, its error says why, and the last valid ones stay in force.
func (f *Flags) LongLived(agent string) (client *image.Client, settings func() error, err error) {
	options, files, err := f.open(agent)
	if err != nil {
		return nil, nil, err
	}
	if client, err = image.New(options); err != nil {
		return nil, nil, fmt.Errorf("preparing to read images: %w", err)
	}
	if files == nil {
		return client, nil, nil
	}
	return client, func() error { _, err := files.Table(); return err }, nil
}
