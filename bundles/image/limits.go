package image

import "cmp"

// Limits bound what an image may consist of and what is done with it. The zero
// value of a field stands for its default, which is far above what catalogs and
// bundles in the field need.
type Limits struct {
	// MaxManifestBytes bounds each manifest, index and configuration.
	MaxManifestBytes int64
	// MaxLayers bounds the number of layers.
	MaxLayers int
	// MaxLayerBytes bounds all layers together as they are transferred.
	MaxLayerBytes int64
	// MaxUnpackedBytes bounds all layers together when they are decompressed,
	// whether anything of them is kept or not.
	MaxUnpackedBytes int64
	// MaxEntries bounds the entries of all layers together, kept or not.
	MaxEntries int64
	// MaxBytes bounds the files that are kept, together and each.
	MaxBytes     int64
	MaxFileBytes int64
	// MaxFiles bounds the number of files and directories that are kept.
	MaxFiles int
}

// The defaults of [Limits].
const (
	DefaultMaxManifestBytes = 4 << 20
	DefaultMaxLayers        = 512
	DefaultMaxLayerBytes    = 4 << 30
	DefaultMaxUnpackedBytes = 16 << 30
	DefaultMaxEntries       = 4 << 20
	DefaultMaxBytes         = 4 << 30
	DefaultMaxFileBytes     = 1 << 30
	DefaultMaxFiles         = 256 << 10
)

// What the file systems that content is brought to can name.
const (
	maxNameBytes = 255
	maxPathBytes = 3000
)

func (l *Limits) withDefaults() Limits {
	out := *l
	out.MaxManifestBytes = cmp.Or(out.MaxManifestBytes, DefaultMaxManifestBytes)
	out.MaxLayers = cmp.Or(out.MaxLayers, DefaultMaxLayers)
	out.MaxLayerBytes = cmp.Or(out.MaxLayerBytes, DefaultMaxLayerBytes)
	out.MaxUnpackedBytes = cmp.Or(out.MaxUnpackedBytes, DefaultMaxUnpackedBytes)
	out.MaxEntries = cmp.Or(out.MaxEntries, DefaultMaxEntries)
	out.MaxBytes = cmp.Or(out.MaxBytes, DefaultMaxBytes)
	out.MaxFileBytes = cmp.Or(out.MaxFileBytes, min(DefaultMaxFileBytes, out.MaxBytes))
	out.MaxFiles = cmp.Or(out.MaxFiles, DefaultMaxFiles)
	return out
}
