// Command web is the program that the tests of the nodes run in pods and on machines:
//
//	web serve ADDRESS   serves the files of its root folder
//	web get URL         prints what is there
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "web:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("want serve ADDRESS or get URL, got %q", args)
	}
	switch args[0] {
	case "serve":
		server := &http.Server{Addr: args[1], Handler: http.FileServer(http.Dir("/")), ReadHeaderTimeout: time.Second}
		return server.ListenAndServe()
	case "get":
		return get(ctx, args[1])
	}
	return fmt.Errorf("want serve or get, got %q", args[0])
}

func get(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // The process ends.
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	_, err = io.Copy(os.Stdout, response.Body)
	return err
}
