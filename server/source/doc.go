// Package source is the edge at which the server gets its content: it reads a
// catalog from a medium, checks it and builds the index that is served.
package source
