// Package catalogdir changes the files of a catalog directory, all of them or none. If a process
// ends in between, the directory is unchanged or the next process restores it. Processes that
// change the same directory wait for each other.
//
// Changes are prepared in the folder .catalog-change of the directory. A file .indexignore in it
// excludes it from the catalog.
package catalogdir
