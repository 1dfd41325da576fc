package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// registryPort is where the registry listens on the bridge.
const registryPort = "5000"

// images is the registry that all nodes pull from.
type images struct {
	server *http.Server
	ended  chan error
}

// serveImages starts a registry that keeps blobs in a folder.
func serveImages(ctx context.Context, folder string) (*images, error) {
	var config net.ListenConfig

	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(hostAddress, registryPort))
	if err != nil {
		return nil, fmt.Errorf("start the registry: %w", err)
	}

	i := &images{ended: make(chan error, 1), server: &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)),
			registry.WithBlobHandler(registry.NewDiskBlobHandler(folder))),
	}}

	go func() { i.ended <- i.server.Serve(listener) }()

	return i, nil
}

func (i *images) stop() error {
	err := i.server.Close()
	if ended := <-i.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}

	if err != nil {
		return fmt.Errorf("stop the registry: %w", err)
	}

	return nil
}

// Registry returns the address of the registry, host and port. It speaks HTTP, to nodes,
// pods and this machine.
func (*Bed) Registry() string { return net.JoinHostPort(hostAddress, registryPort) }

// Push stores an image under a name without a host ("chandlery/registry:dev") and returns
// its digest.
func (b *Bed) Push(ctx context.Context, image v1.Image, repositoryTag string) (v1.Hash, error) {
	return Push(ctx, b.Registry(), image, repositoryTag)
}

// Push stores an image in the registry of a bed, which may be of another process.
func Push(ctx context.Context, registry string, image v1.Image, repositoryTag string) (v1.Hash, error) {
	digest, err := push(ctx, registry, image, repositoryTag)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("push %s: %w", repositoryTag, err)
	}

	return digest, nil
}

func push(ctx context.Context, registry string, image v1.Image, repositoryTag string) (v1.Hash, error) {
	reference, err := name.ParseReference(registry+"/"+repositoryTag, name.Insecure, name.StrictValidation)
	if err != nil {
		return v1.Hash{}, err
	}

	err = remote.Write(reference, image, remote.WithContext(ctx))
	if err != nil {
		return v1.Hash{}, err
	}

	return image.Digest()
}

// newPauseImage makes the image of the program in a folder.
func newPauseImage(folder string) (v1.Image, error) {
	layer, err := programLayer(filepath.Join(folder, "pause"))
	if err != nil {
		return nil, fmt.Errorf("make the pause image: %w", err)
	}

	image, err := mutate.AppendLayers(empty.Image, layer)
	if err == nil {
		image, err = mutate.Config(image, v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"})
	}

	if err != nil {
		return nil, fmt.Errorf("make the pause image: %w", err)
	}

	return image, nil
}

// programLayer is a layer with nothing but a program.
func programLayer(file string) (v1.Layer, error) {
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return archive(file) })
}
