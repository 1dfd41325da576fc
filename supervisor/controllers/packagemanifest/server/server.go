package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/manifest"
)

const (
	name = "packagemanifests"
	// maxRequests is the maximum number of concurrent requests. More get 429.
	maxRequests = 50
	// proxyWait limits how long a server waits until it has read how the front proxy authenticates.
	proxyWait     = 30 * time.Second
	proxyInterval = 50 * time.Millisecond
	// shutdownTimeout limits how long a stopping server waits for open connections. Answers take less than a second.
	shutdownTimeout = 5 * time.Second
	// reviewCache is how long the answer of a SubjectAccessReview is used.
	reviewCache = 10 * time.Second
)

// The ConfigMap in which kube-apiserver publishes how it forwards requests.
const (
	proxyNamespace = "kube-system"
	proxyConfigMap = "extension-apiserver-authentication"
)

// Config configures a server.
type Config struct {
	// Listener accepts the connections.
	Listener net.Listener
	// Certificate is the serving certificate.
	Certificate dynamiccertificates.CertKeyContentProvider
	// Client reads how kube-apiserver authenticates, and sends SubjectAccessReviews.
	Client kubernetes.Interface
	// Index has the packages, and ReadIcon reads their icons.
	Index    *manifest.Index
	ReadIcon IconReader
	// Contents opens the contents of catalogs for other supervisors.
	Contents ContentOpener
	// Serving is called when the server answers requests.
	Serving func()
}

// Run serves until ctx ends.
func Run(ctx context.Context, c Config) error {
	proxy, err := frontProxy(ctx, c.Client)
	if err != nil {
		return err
	}
	generic, err := genericConfig(c, proxy)
	if err != nil {
		return err
	}
	server, err := generic.Complete(nil).New(name, genericapiserver.NewEmptyDelegate())
	if err != nil {
		return fmt.Errorf("preparing the API of PackageManifests: %w", err)
	}
	server.ShutdownTimeout = shutdownTimeout
	scheme := newScheme()
	formats := newTextFormats(scheme)
	group := genericapiserver.NewDefaultAPIGroupInfo(GroupVersion.Group, scheme, runtime.NewParameterCodec(scheme), formats.CodecFactory)
	group.NegotiatedSerializer = formats
	group.VersionedResourcesStorageMap[GroupVersion.Version] = map[string]rest.Storage{
		resource: storage{index: c.Index}, resource + "/icon": newIcons(c.Index, c.ReadIcon),
	}
	if err := server.InstallAPIGroup(&group); err != nil {
		return fmt.Errorf("preparing the API of PackageManifests: %w", err)
	}
	if err := server.AddPostStartHook("serving", func(genericapiserver.PostStartHookContext) error {
		c.Serving()
		return nil
	}); err != nil {
		return fmt.Errorf("preparing the API of PackageManifests: %w", err)
	}
	if err := server.PrepareRun().RunWithContext(ctx); err != nil {
		return fmt.Errorf("serving PackageManifests: %w", err)
	}
	return nil
}

// textFormats are the formats of PackageManifests: JSON and YAML, as for custom resources. A client that also accepts
// protobuf gets JSON, and a client that accepts nothing else gets 406.
type textFormats struct{ serializer.CodecFactory }

// newTextFormats returns the formats of a scheme. They encode lists in JSON package by package: a whole one can have megabytes.
func newTextFormats(scheme *runtime.Scheme) textFormats {
	return textFormats{serializer.NewCodecFactory(scheme, serializer.WithStreamingCollectionEncodingToJSON())}
}

// SupportedMediaTypes returns the formats of the library without protobuf and CBOR.
func (f textFormats) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(f.CodecFactory.SupportedMediaTypes()), func(s runtime.SerializerInfo) bool { return !s.EncodesAsText })
}

// genericConfig returns the configuration of the library. Requests of the front proxy are authenticated, and no others.
func genericConfig(c Config, proxy *authenticatorfactory.RequestHeaderConfig) (*genericapiserver.Config, error) {
	scheme := newScheme()
	generic := genericapiserver.NewConfig(serializer.NewCodecFactory(scheme))
	generic.SecureServing = &genericapiserver.SecureServingInfo{Listener: c.Listener, Cert: c.Certificate}
	generic.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	generic.LoopbackClientConfig = &restclient.Config{}
	generic.ExternalAddress = c.Listener.Addr().String()
	generic.EnableIndex, generic.EnableProfiling, generic.EnableMetrics = false, false, false
	generic.BuildHandlerChainFunc = func(handler http.Handler, config *genericapiserver.Config) http.Handler {
		handler = newPreparedAnswers(c.Index, newTextFormats(scheme), handler)
		return &peerHandler{certificate: c.Certificate, open: c.Contents, next: genericapiserver.DefaultBuildHandlerChain(handler, config)}
	}
	generic.MaxRequestsInFlight, generic.MaxMutatingRequestsInFlight = maxRequests, 1
	namer := openapi.NewDefinitionNamer(scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	generic.OpenAPIConfig.Info.Title = name
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	generic.OpenAPIV3Config.Info.Title = name
	authenticator, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{RequestHeaderConfig: proxy}.New()
	if err != nil {
		return nil, fmt.Errorf("preparing to authenticate requests: %w", err)
	}
	generic.Authentication.Authenticator = authenticator
	generic.Authentication.RequestHeaderConfig = proxy
	if err := generic.Authentication.ApplyClientCert(proxy.CAContentProvider, generic.SecureServing); err != nil {
		return nil, fmt.Errorf("preparing to authenticate the front proxy: %w", err)
	}
	generic.Authorization.Authorizer, err = newAuthorizer(c.Client)
	return generic, err
}

// newAuthorizer returns an authorizer that asks kube-apiserver again whether a user may send a request.
func newAuthorizer(client kubernetes.Interface) (authorizer.Authorizer, error) {
	review, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(), AllowCacheTTL: reviewCache, DenyCacheTTL: reviewCache,
		WebhookRetryBackoff: &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5},
	}.New()
	if err != nil {
		return nil, fmt.Errorf("preparing to authorize requests: %w", err)
	}
	chain, err := union.New(
		union.NamedAuthorizer{AuthorizerName: "privileged", Authorizer: authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)},
		union.NamedAuthorizer{AuthorizerName: "review", Authorizer: review},
	)
	if err != nil {
		return nil, fmt.Errorf("preparing to authorize requests: %w", err)
	}
	return chain, nil
}

// runningCA is the certificate authority of a controller that runs already. The controller accepts listeners only before it
// runs. It is safe for concurrent use.
type runningCA struct {
	dynamiccertificates.CAContentProvider

	mu        sync.Mutex
	listeners []dynamiccertificates.Listener
}

// AddListener implements [dynamiccertificates.Notifier].
func (c *runningCA) AddListener(listener dynamiccertificates.Listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners = append(c.listeners, listener)
}

// Enqueue implements [dynamiccertificates.Listener] for the controller.
func (c *runningCA) Enqueue() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, listener := range c.listeners {
		listener.Enqueue()
	}
}

// frontProxy reads the ConfigMap with the certificate authority and the headers of the front proxy, and follows it until ctx
// ends. It waits for at most proxyWait. Until both have been read, no request is authenticated.
func frontProxy(ctx context.Context, client kubernetes.Interface) (*authenticatorfactory.RequestHeaderConfig, error) {
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("front-proxy", proxyNamespace, proxyConfigMap, "requestheader-client-ca-file", client)
	if err != nil {
		return nil, fmt.Errorf("preparing to read the certificate authority of the front proxy: %w", err)
	}
	headers := headerrequest.NewRequestHeaderAuthRequestController(proxyConfigMap, proxyNamespace, client,
		"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers",
		"requestheader-extra-headers-prefix", "requestheader-allowed-names")
	running := &runningCA{CAContentProvider: ca}
	ca.AddListener(running)
	go headers.Run(ctx, 1)
	go ca.Run(ctx, 1)
	err = wait.PollUntilContextTimeout(ctx, proxyInterval, proxyWait, true, func(context.Context) (bool, error) {
		return len(headers.UsernameHeaders()) > 0 && len(ca.CurrentCABundleContent()) > 0, nil
	})
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "Serving PackageManifests without the settings of the front proxy", "configMap", proxyNamespace+"/"+proxyConfigMap)
	}
	return &authenticatorfactory.RequestHeaderConfig{
		CAContentProvider: running, UsernameHeaders: headerrequest.StringSliceProviderFunc(headers.UsernameHeaders),
		UIDHeaders: headerrequest.StringSliceProviderFunc(headers.UIDHeaders), GroupHeaders: headerrequest.StringSliceProviderFunc(headers.GroupHeaders),
		ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(headers.ExtraHeaderPrefixes),
		AllowedClientNames:  headerrequest.StringSliceProviderFunc(headers.AllowedClientNames),
	}, nil
}
