package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/registry"
)

// keychain has the credentials of "docker login".
var keychain = authn.DefaultKeychain

// withRegistry calls use with the address of a registry in memory that stores images and artifacts. cosign and helm read
// from it as they read from the registry of a release.
func withRegistry(ctx context.Context, all []stored, use func(host string) error) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("starting a registry: %w", err)
	}
	server := &http.Server{
		Handler:           registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))),
		ReadHeaderTimeout: 10 * time.Second,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	host := listener.Addr().String()
	err = push(ctx, all, host)
	if err == nil {
		err = use(host)
	}
	err = errors.Join(err, server.Close())
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
