// Package docs checks the documentation: links must have targets; commands, flags and make targets
// must exist; and the reference pages must list exactly the names in the code.
package docs
