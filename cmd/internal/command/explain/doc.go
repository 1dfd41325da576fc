// Package explain is the command that says why something is not progressing.
package explain
