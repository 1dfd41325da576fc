package index

import "fmt"

// Index answers the queries of the api.Registry contract. It never changes and is safe for
// concurrent use. Its memory is released when neither the index nor any [Message] of it is
// referenced.
type Index struct {
	*reader
	registryQueries
	extensionQueries

	info Info
}

// Stats are the sizes of an index.
type Stats struct {
	Packages int
	Channels int
	// Bundles counts each bundle once. Entries counts it once for each of its channels.
	Bundles int
	Entries int
	// Bytes is the size of all encoded messages. Shared parts count once.
	Bytes int64
}

// Info describes an index.
type Info struct {
	Stats

	// ContentDigest is the SHA-256, in hex, of everything in the answers of the index.
	ContentDigest string
	// SourceDigest identifies the source of the index, as its creator defines; empty if not set.
	SourceDigest string
	// Format is the version of the file's format.
	Format int
	// FileBytes is the size of the file.
	FileBytes int64
}

// NotFoundError means that the catalog lacks the requested object.
type NotFoundError struct {
	// Message has the wording that clients of catalogs know.
	Message string
}

// Error returns the message.
func (e *NotFoundError) Error() string { return e.Message }

func notFound(format string, args ...any) error {
	return &NotFoundError{Message: fmt.Sprintf(format, args...)}
}

// Stats returns the sizes of the index.
func (x *Index) Stats() Stats { return x.info.Stats }

// Digest returns the SHA-256, in hex, of everything in the answers of the index. Two indexes with
// the same digest return the same answers.
func (x *Index) Digest() string { return x.info.ContentDigest }

// Info returns the description of the index.
func (x *Index) Info() Info { return x.info }
