// Command mill is an operator that only converts blends, which have the field beans in version v1
// and the field variety in version v2:
//
//	mill CERTIFICATES ADDRESS   serves /convert with tls.crt and tls.key of a folder
//
// It reads the certificate again for each connection. After a signal it asks clients to close their
// connections for a while, then finishes the calls in progress and ends. See docs/catalogs.md.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// drainTime is how long answers after the signal have the header Connection: close.
	drainTime = 2 * time.Second
	// shutdownTimeout bounds the calls in progress when the program stops.
	shutdownTimeout = 5 * time.Second
)

// fields maps versions to the name of their only field.
var fields = map[string]string{"v1": "beans", "v2": "variety"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mill:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("want CERTIFICATES ADDRESS, got %q", args)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /convert", convert)
	server := &http.Server{
		Addr: args[1], Handler: closing(ctx, mux), ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				pair, err := tls.LoadX509KeyPair(filepath.Join(args[0], "tls.crt"), filepath.Join(args[0], "tls.key"))
				return &pair, err
			},
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServeTLS("", "") }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	<-time.After(drainTime)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	return server.Shutdown(ctx)
}

// closing returns a handler that asks clients to close their connections once ctx is done.
func closing(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// review holds the fields used of a ConversionReview.
type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID               string           `json:"uid"`
	DesiredAPIVersion string           `json:"desiredAPIVersion"`
	Objects           []map[string]any `json:"objects"`
}

type response struct {
	UID              string           `json:"uid"`
	ConvertedObjects []map[string]any `json:"convertedObjects"`
	Result           map[string]any   `json:"result"`
}

func convert(w http.ResponseWriter, r *http.Request) {
	var asked review
	err := json.NewDecoder(r.Body).Decode(&asked)
	if err == nil && asked.Request == nil {
		err = errors.New("the review has no request")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := &response{UID: asked.Request.UID, ConvertedObjects: []map[string]any{}, Result: map[string]any{"status": "Success"}}
	for _, o := range asked.Request.Objects {
		if err := rename(o, asked.Request.DesiredAPIVersion); err != nil {
			answer.Result = map[string]any{"status": "Failure", "message": err.Error()}
			answer.ConvertedObjects = nil
			break
		}
		answer.ConvertedObjects = append(answer.ConvertedObjects, o)
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review{APIVersion: asked.APIVersion, Kind: asked.Kind, Response: answer}); err != nil {
		fmt.Fprintln(os.Stderr, "mill: answering:", err)
	}
}

// rename converts an object to another version by renaming its field.
func rename(o map[string]any, to string) error {
	from, _ := o["apiVersion"].(string)
	source, target := fields[versionOf(from)], fields[versionOf(to)]
	if source == "" || target == "" {
		return fmt.Errorf("cannot convert from %q to %q", from, to)
	}
	spec, _ := o["spec"].(map[string]any)
	value, there := spec[source]
	if !there {
		return fmt.Errorf("an object of %s has no spec.%s", from, source)
	}
	delete(spec, source)
	spec[target] = value
	o["apiVersion"] = to
	return nil
}

func versionOf(apiVersion string) string {
	_, version, _ := strings.Cut(apiVersion, "/")
	return version
}
