// Package source loads the content of the server: it reads a catalog from a medium, validates it
// and builds the index to serve.
package source
