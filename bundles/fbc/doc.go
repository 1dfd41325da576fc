// Package fbc reads file-based catalogs: directories of JSON and YAML files
// that describe packages, channels and bundles.
//
// Every file below the root is part of the catalog, whatever it is called,
// unless an .indexignore file excludes it. A file holds any number of objects,
// as JSON values one after the other or as YAML documents. What an object is
// follows from its schema field alone; files and directories have no meaning.
//
// The package reads only through [io/fs.FS] and decides nothing about the
// content: whether the catalog makes sense is the business of
// [github.com/chandlery/chandlery/bundles.Catalog.Validate].
package fbc
