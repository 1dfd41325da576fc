// Package catalogdir changes the files of a catalog directory, all of them or none: a process
// that ends in between, for whatever reason, leaves the directory as it was, or the next one
// restores it. Processes that change the same directory wait for each other.
//
// Changes are prepared in a folder beside the catalog, since everything in a catalog directory
// is read as a part of the catalog.
package catalogdir
