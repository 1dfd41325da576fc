package imagesources

import (
	"context"
	"errors"
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
	// Config is the ConfigMap in its namespace with rules of its own; empty for none.
	Config string
}

// config returns the ConfigMap with rules of the catalog.
func (c *Catalog) config() types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: c.Config}
}

// Realm returns the name of the users that may share content. The rules of a catalog are under the control of its
// namespace: what its sources permit must not give access to what other sources have permitted.
func (c *Catalog) Realm() string {
	if c.Config == "" {
		return ""
	}
	return "namespace " + c.Namespace
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

// Access returns how an image of a catalog is pulled. It reads the pull secrets of the catalog, and its rules. If
// these cannot be used, the error is an [*image.Error].
func (s *Settings) Access(ctx context.Context, reader client.Reader, catalog *Catalog, reference string) (*Access, error) {
	query := pullsecrets.Query{Namespace: catalog.Namespace, Account: catalog.Account, Names: catalog.Secrets, Shared: s.pullSecrets}
	choose, err := s.proxy.read(ctx, reader)
	if _, ok := errors.AsType[*proxyError](err); ok {
		return nil, &image.Error{Reference: reference, Reason: image.ReasonConfiguration, Err: err}
	}
	if err != nil {
		return nil, err
	}
	access := &Access{Sources: image.Sources{Router: s, Proxy: choose}}
	if catalog.Config != "" {
		// The rules could lead to a place that must not see these credentials.
		query.Shared = nil
		own := s.own.Read(ctx, reader, catalog.config())
		if _, ok := errors.AsType[*OwnConfigError](own.Err); ok && own.Rules == nil {
			return nil, &image.Error{Reference: reference, Reason: image.ReasonConfiguration, Err: own.Err}
		}
		if own.Rules == nil {
			return nil, own.Err
		}
		access.Sources.Router = &ownRouter{s, own.Rules}
	}
	secrets, err := pullsecrets.Find(ctx, reader, query)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the object
	}
	access.secrets, access.Keychain, access.SecretProblem = secrets, secrets.Keychain(), secrets.Problem
	logger := log.FromContext(ctx)
	access.Sources.Asked = func(a image.Attempt) {
		if a.Err == nil {
			logger.V(1).Info("Found image", "image", a.Image, "source", a.Place, "rule", a.Rule)
			return
		}
		logger.Info("Source lacks image", "image", a.Image, "source", a.Place, "rule", a.Rule, "error", a.Err.Error())
	}
	return access, nil
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
