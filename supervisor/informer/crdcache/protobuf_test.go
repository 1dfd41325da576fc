package crdcache

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestDefinitionsAreReadAsProtobuf reads the media type that the cache asks for.
func TestDefinitionsAreReadAsProtobuf(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := apimeta.NewDefaultRESTMapper(nil)
	mapper.Add(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), apimeta.RESTScopeRoot)
	accepted := make(chan string, 1)
	cfg := &rest.Config{Host: "https://api.example", Transport: transport(func(r *http.Request) (*http.Response, error) {
		select {
		case accepted <- r.Header.Get("Accept"):
		default:
		}
		return nil, errors.New("no API server")
	})}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, MapperProvider: func(*rest.Config, *http.Client) (apimeta.RESTMapper, error) { return mapper, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := Add(mgr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- definitions.Start(ctx) }()
	go func() { _, _ = definitions.GetInformer(ctx, &apiextensionsv1.CustomResourceDefinition{}) }()
	if got := <-accepted; !strings.HasPrefix(got, runtime.ContentTypeProtobuf) {
		t.Errorf("the cache asks for %s", got)
	}
	cancel()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
