// Package explain is the command that explains why something does not progress.
package explain
