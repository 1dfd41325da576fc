package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/chandlery/chandlery/test/images"
)

// registryPort is the registry's port on the bridge.
const registryPort = "5000"

// An image stored as NAME is also served as private/NAME, only to this user.
const (
	PrivateUser     = "harbourmaster"
	PrivatePassword = "open sesame"
	privatePrefix   = "/v2/private/"
)

// ImageRegistry is the registry of a bed. Nodes pull every image from it.
type ImageRegistry struct {
	server *http.Server
	ended  chan error
}

// serveImages starts a registry that stores blobs in a folder.
func serveImages(ctx context.Context, folder string) (*ImageRegistry, error) {
	var config net.ListenConfig

	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(hostAddress, registryPort))
	if err != nil {
		return nil, fmt.Errorf("start the registry: %w", err)
	}

	i := &ImageRegistry{ended: make(chan error, 1), server: &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: forward(guard(registry.New(registry.Logger(log.New(io.Discard, "", 0)),
			registry.WithBlobHandler(registry.NewDiskBlobHandler(folder))))),
	}}

	go func() { i.ended <- i.server.Serve(listener) }()

	return i, nil
}

// forward forwards pulls of images whose names have a port of 127.0.0.1. A test serves them on this machine.
func forward(stored http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// containerd adds the host of an image's name, because it asks another one.
		host := r.URL.Query().Get("ns")
		if !strings.HasPrefix(host, "127.0.0.1:") {
			stored.ServeHTTP(w, r)

			return
		}

		proxy := &httputil.ReverseProxy{
			Rewrite:  func(p *httputil.ProxyRequest) { p.SetURL(&url.URL{Scheme: "http", Host: host}) },
			ErrorLog: log.New(io.Discard, "", 0),
		}
		proxy.ServeHTTP(w, r)
	})
}

// guard requires credentials for private names.
func guard(open http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, private := strings.CutPrefix(r.URL.Path, privatePrefix)
		if !private {
			open.ServeHTTP(w, r)

			return
		}

		if user, password, _ := r.BasicAuth(); user != PrivateUser || password != PrivatePassword {
			w.Header().Set("WWW-Authenticate", `Basic realm="bed"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"not for you"}]}`, http.StatusUnauthorized)

			return
		}

		r.URL.Path = "/v2/" + path
		open.ServeHTTP(w, r)
	})
}

func (i *ImageRegistry) stop() error {
	err := i.server.Close()
	if ended := <-i.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}

	if err != nil {
		return fmt.Errorf("stop the registry: %w", err)
	}

	return nil
}

// Address returns the host and port. The registry serves plain HTTP to nodes, pods and this machine.
func (*ImageRegistry) Address() string { return net.JoinHostPort(hostAddress, registryPort) }

// PushIdle stores the image of pod sandboxes, whose program only waits, under a name without a host.
func (i *ImageRegistry) PushIdle(ctx context.Context, repositoryTag string) error {
	reference, err := name.ParseReference(i.Address()+"/"+pauseImage, name.Insecure)
	if err != nil {
		return fmt.Errorf("naming image %s: %w", pauseImage, err)
	}
	image, err := remote.Image(reference, remote.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("reading image %s: %w", pauseImage, err)
	}
	_, err = i.Push(ctx, image, repositoryTag)
	return err
}

// Push stores an image under a name without a host ("chandlery/registry:dev") and returns
// its digest.
func (i *ImageRegistry) Push(ctx context.Context, image v1.Image, repositoryTag string) (v1.Hash, error) {
	return images.Push(ctx, i.Address()+"/"+repositoryTag, image)
}
