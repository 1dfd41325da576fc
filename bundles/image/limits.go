package image

import "cmp"

// Limits bound the size and content of an image. The zero value of a field means its default, which
// is far above the needs of existing catalogs and bundles.
type Limits struct {
	// MaxManifestBytes bounds each manifest, index and configuration.
	MaxManifestBytes int64
	// MaxLayers bounds the number of layers.
	MaxLayers int
	// MaxLayerBytes bounds the transferred size of all layers together.
	MaxLayerBytes int64
	// MaxUnpackedBytes bounds the decompressed size of all layers together, extracted or not.
	MaxUnpackedBytes int64
	// MaxEntries bounds the number of entries of all layers together, extracted or not.
	MaxEntries int64
	// MaxBytes bounds the size of the extracted files, together and each.
	MaxBytes     int64
	MaxFileBytes int64
	// MaxFiles bounds the number of extracted files and directories.
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

// The limits of file systems for names.
const (
	maxNameBytes = 255
	maxPathBytes = 3000
)

// maxPathElements is the largest number of elements of a path. Each element of a path costs a system call for each of
// its parents, and tiny entries can repeat a deep path a million times.
const maxPathElements = 64

// BundleLimits returns the limits of bundle images. They are far above what real bundles need. They bound the disk space
// of each pull, for its layers and its content.
func BundleLimits() Limits {
	return Limits{
		MaxLayers: 128, MaxLayerBytes: 256 << 20, MaxUnpackedBytes: 1 << 30, MaxEntries: 1 << 20,
		MaxBytes: 64 << 20, MaxFileBytes: 64 << 20, MaxFiles: 4 << 10,
	}
}

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
