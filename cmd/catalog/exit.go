package main

// The ways in which commands end, besides zero.
const (
	// exitFailed is for a command that could not do its work, and for one that found what it
	// looks for.
	exitFailed = 1
)

// exitCode returns how the program ends after an error.
func exitCode(error) int { return exitFailed }
