// Command hello prints one word.
package main

import (
	"fmt"

	"example.com/dep"
)

var who = "nobody"

func main() { fmt.Print(dep.Greeting + " " + who) }
