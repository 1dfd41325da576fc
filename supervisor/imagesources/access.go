package imagesources

import (
	"context"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/imagesources/pullsecrets"
)

// Catalog is a catalog whose images are pulled.
type Catalog struct {
	types.NamespacedName

	// Account is the ServiceAccount whose pull secrets apply.
	Account string
	// Secrets is the spec.secrets of the CatalogSource.
	Secrets []string
}

// Access is how the images of a catalog are pulled.
type Access struct {
	// Sources are the sources of images.
	Sources image.Sources
	// Keychain has the credentials.
	Keychain authn.Keychain
	// SecretProblem describes the first unusable pull secret; empty if there is none.
	SecretProblem string

	secrets *pullsecrets.Set
}

// Access reads the pull secrets of a catalog.
func (s *Settings) Access(ctx context.Context, reader client.Reader, catalog *Catalog) (*Access, error) {
	secrets, err := pullsecrets.Find(ctx, reader, pullsecrets.Query{
		Namespace: catalog.Namespace, Account: catalog.Account, Names: catalog.Secrets, Shared: s.pullSecrets,
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // names the object
	}
	logger := log.FromContext(ctx)
	asked := func(a image.Attempt) {
		if a.Err == nil {
			logger.V(1).Info("Found image", "image", a.Image, "source", a.Place, "rule", a.Rule)
			return
		}
		logger.Info("Source lacks image", "image", a.Image, "source", a.Place, "rule", a.Rule, "error", a.Err.Error())
	}
	return &Access{
		Sources: image.Sources{Router: s, Asked: asked}, Keychain: secrets.Keychain(), SecretProblem: secrets.Problem, secrets: secrets,
	}, nil
}

// Identity returns a name for the right to have an image: the sources that rules name, and the content of the
// Secrets that apply to any source. Equal identities have equal access. The identity does not reveal credentials.
func (a *Access) Identity(ref name.Reference) (string, error) {
	route, err := a.Sources.Router.Route(ref)
	if err != nil {
		return "", &image.Error{Reference: ref.String(), Reason: image.ReasonConfiguration, Err: err}
	}
	targets := make([]authn.Resource, 0, len(route.Sources))
	var places []string
	for i := range route.Sources {
		repository := route.Sources[i].Reference.Context()
		targets = append(targets, repository)
		if route.Sources[i].Rule != "" {
			places = append(places, "via "+repository.Name())
		}
	}
	return strings.Join(append([]string{a.secrets.Identity(targets...)}, places...), " "), nil
}
