// Command cp copies one file and keeps its permissions. OLM's pods start it from OLM's image as "cp FROM TO" or
// "cp -Rv FROM TO".
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	flag.Bool("Rv", false, "ignored")
	flag.Parse()
	if err := run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "cp:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("want two paths, have %q", args)
	}
	info, err := os.Stat(args[0])
	if err != nil {
		return err
	}
	content, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], content, info.Mode().Perm())
}
