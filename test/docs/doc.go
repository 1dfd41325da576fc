// Package docs checks what is written for people: that links lead somewhere, that commands,
// flags and make targets exist, and that the reference pages name what the code names and
// nothing else.
package docs
