// Package fbc reads file-based catalogs: directories of JSON and YAML files
// that describe packages, channels and bundles.
//
// Every file below the root is part of the catalog, whatever its name, unless an .indexignore file
// excludes it. A file holds any number of objects, as JSON values one after the other or as YAML
// documents. The schema field alone determines what an object is; files and directories have no
// meaning.
//
// The package reads only through [io/fs.FS]. It does not validate the content: see
// [github.com/chandlery/chandlery/bundles.Catalog.Validate].
package fbc
