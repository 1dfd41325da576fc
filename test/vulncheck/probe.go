package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// probeTimeout bounds the wait for a database that does not answer.
const probeTimeout = 15 * time.Second

// unreachableError is the error of a database that cannot be read now.
type unreachableError struct {
	// database is its address.
	database string
	// err is the cause.
	err error
}

// Error names the database and the cause.
func (e *unreachableError) Error() string {
	return fmt.Sprintf("the vulnerability database %s cannot be reached: %v", e.database, e.err)
}

// Unwrap returns the cause.
func (e *unreachableError) Unwrap() error { return e.err }

// probe reads the index of a database. The error is an *unreachableError if the database cannot be
// read, and another one if its address is invalid.
func probe(ctx context.Context, database string) error {
	address, err := url.Parse(database)
	if err != nil {
		return fmt.Errorf("GOVULNDB: %w", err)
	}
	switch address.Scheme {
	case "file":
		_, err = os.Stat(filepath.Join(filepath.FromSlash(address.Path), "index", "db.json"))
	case "http", "https":
		err = get(ctx, address.JoinPath("index", "db.json.gz").String())
	default:
		return fmt.Errorf("GOVULNDB is %q: want an address that begins with https://, http:// or file://", database)
	}
	if err != nil {
		return &unreachableError{database: database, err: err}
	}
	return nil
}

// get returns an error if a page does not answer with status 200.
func get(ctx context.Context, page string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", response.Status)
	}
	return nil
}
