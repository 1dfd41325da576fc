// Package dep is required by hello.
package dep

// Greeting is the first word that hello prints.
const Greeting = "hello"
