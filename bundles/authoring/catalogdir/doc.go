// Package catalogdir changes the files of a catalog directory, all of them or none: a process
// that ends in between, for whatever reason, leaves the directory as it was, or the next one
// restores it. Processes that change the same directory wait for each other.
//
// Changes are prepared in the folder .catalog-change of the directory. A file .indexignore in it
// excludes it from the catalog.
package catalogdir
