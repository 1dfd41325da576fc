package webhook

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

const (
	// probeTimeout bounds one call of a conversion webhook.
	probeTimeout = 3 * time.Second
	// maxReplySize bounds the bytes that are read of an answer to an empty review.
	maxReplySize = 64 << 10
)

// conversions reads and changes how CustomResourceDefinitions convert objects.
type conversions struct {
	client          client.Client
	live            client.Reader   // reads past the cache
	crds            client.Reader   // CustomResourceDefinitions without schemas
	unreachablePods unreachablePods // of pods that convert
}

// observe returns an observation that states whether definitions need a change for the version's
// webhooks. It first calls the webhooks that have to answer before the change, if the Deployments are
// healthy.
func (c *conversions) observe(ctx context.Context, s *State, seen phase.Webhooks, healthy bool) (phase.Webhooks, error) {
	probes := healthy && slices.Contains([]operatorsv1alpha1.ClusterServiceVersionPhase{
		operatorsv1alpha1.CSVPhaseInstalling, operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVPhaseFailed,
	}, s.version.CSV.Status.Phase)
	for _, conversion := range webhook.Conversions(s.version.CSV, s.servers, s.certs.current) {
		crd, in, err := c.read(ctx, s, conversion)
		if err != nil {
			return seen, err
		}
		if crd == nil {
			continue // reported as a requirement
		}
		if named := namedService(crd); named != nil && *named == serviceOf(conversion) {
			seen.Converts = append(seen.Converts, conversion.CRD)
		}
		change, waits := conversion.Next(crd, in)
		seen.Switch.Due = seen.Switch.Due || change != nil
		if !waits || !probes {
			continue
		}
		if problem := c.probe(ctx, s, conversion.Deployment); problem != nil {
			seen.Waiting = cmp.Or(seen.Waiting, phase.Sentence{
				Text: olmtext.WebhooksMissing, Detail: fmt.Sprintf("waiting for the conversion webhook of deployment %s to answer: %v", conversion.Deployment, problem),
			})
			seen.Probing = true
			continue
		}
		seen.Switch.Due = true
	}
	return seen, nil
}

// read returns a definition, nil if there is none, and the circumstances of a change of its
// conversion.
func (c *conversions) read(ctx context.Context, s *State, conversion webhook.Conversion,
) (*apiextensionsv1.CustomResourceDefinition, webhook.ConversionState, error) {
	in := webhook.ConversionState{Answers: s.answers[conversion.Deployment]}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := c.crds.Get(ctx, client.ObjectKey{Name: conversion.CRD}, crd)
	if apierrors.IsNotFound(err) {
		return nil, in, nil
	}
	if err != nil {
		return nil, in, fmt.Errorf("getting CustomResourceDefinition %s: %w", conversion.CRD, err)
	}
	named := namedService(crd)
	if named == nil || *named == serviceOf(conversion) {
		return crd, in, nil
	}
	service := &metav1.PartialObjectMetadata{}
	service.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	err = c.live.Get(ctx, *named, service)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, in, fmt.Errorf("getting Service %s: %w", named, err)
	}
	in.ServiceMissing = err != nil
	return crd, in, nil
}

// namedService returns the Service through which a definition converts; nil if there is none.
func namedService(crd *apiextensionsv1.CustomResourceDefinition) *types.NamespacedName {
	c := crd.Spec.Conversion
	if c == nil || c.Webhook == nil || c.Webhook.ClientConfig == nil || c.Webhook.ClientConfig.Service == nil {
		return nil
	}
	return &types.NamespacedName{Namespace: c.Webhook.ClientConfig.Service.Namespace, Name: c.Webhook.ClientConfig.Service.Name}
}

func serviceOf(c webhook.Conversion) types.NamespacedName {
	to := c.Want.Webhook.ClientConfig.Service
	return types.NamespacedName{Namespace: to.Namespace, Name: to.Name}
}

// apply changes the conversions of the definitions that may be changed now.
func (c *conversions) apply(ctx context.Context, s *State) error {
	for _, conversion := range webhook.Conversions(s.version.CSV, s.servers, s.certs.current) {
		crd, in, err := c.read(ctx, s, conversion)
		if err != nil {
			return err
		}
		if crd == nil {
			continue
		}
		change, _ := conversion.Next(crd, in)
		if change == nil {
			continue
		}
		if err := c.checkAllowed(ctx, s, crd); err != nil {
			return err
		}
		if err := PatchConversion(ctx, c.client, crd, change); err != nil {
			return err
		}
	}
	return nil
}

// PatchConversion writes a change of the conversion of a definition.
func PatchConversion(ctx context.Context, c client.Writer, crd *apiextensionsv1.CustomResourceDefinition, change *webhook.Change) error {
	body, err := change.Patch(crd)
	if err != nil {
		return err
	}
	target := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}}
	if err := apply.Patch(ctx, c, target, client.RawPatch(types.JSONPatchType, body)); err != nil {
		return fmt.Errorf("changing the conversion of CustomResourceDefinition %s: %w", crd.Name, err)
	}
	logf.FromContext(ctx).Info("Changed how custom resources are converted", "crd", crd.Name, "conversion", change.Conversion != nil, "storage", change.Storage)
	return nil
}

// probe calls the conversion webhooks of a Deployment at each of its pods, and records in s when all
// have answered.
func (c *conversions) probe(ctx context.Context, s *State, deployment string) error {
	if s.answers[deployment] {
		return nil
	}
	i := slices.IndexFunc(s.servers, func(server webhook.Server) bool { return server.Deployment == deployment })
	server, namespace := s.servers[i], s.version.CSV.Namespace
	probes, err := webhook.Probes(server, namespace, s.certs.current[deployment])
	if err != nil {
		return err
	}
	var endpoints discoveryv1.EndpointSliceList
	err = c.live.List(ctx, &endpoints, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: server.ServiceName()})
	if err != nil {
		return fmt.Errorf("listing the endpoints of Service %s/%s: %w", namespace, server.ServiceName(), err)
	}
	var unreachable error
	for _, one := range probes {
		addresses := webhook.Addresses(endpoints.Items, one.Port)
		if len(addresses) == 0 {
			return fmt.Errorf("service %s/%s has no ready pods on port %d", namespace, server.ServiceName(), one.Port)
		}
		for _, address := range addresses {
			err := sendProbe(ctx, one, address)
			at := podKey{s.version.CSV.UID, deployment, address}
			if !webhook.Unreachable(err) {
				c.unreachablePods.recordReachable(at)
				if err != nil {
					return err
				}
				continue
			}
			if c.unreachablePods.recordUnreachable(at, s.version.Now) < unreachableTime {
				unreachable = err
				continue
			}
			logf.FromContext(ctx).Info("Taking a conversion webhook that cannot be reached from here as ready", "deployment", deployment, "address", address, "error", err.Error())
		}
	}
	s.answers[deployment] = unreachable == nil
	return unreachable
}

// sendProbe sends a review without objects to one pod, under the name of its Service.
func sendProbe(ctx context.Context, c webhook.Probe, address string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	transport := &http.Transport{
		TLSClientConfig: c.TLS, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+c.TLS.ServerName+"/"+strings.TrimPrefix(c.Path, "/"), bytes.NewReader(c.Body))
	if err != nil {
		return fmt.Errorf("making a request to %s: %w", address, err)
	}
	request.Header.Set("Content-Type", "application/json")
	reply, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("calling %s: %w", address, webhook.StableError(err))
	}
	defer func() { _ = reply.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(reply.Body, maxReplySize))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", address, webhook.StableError(err))
	}
	if err := c.CheckReply(reply.StatusCode, body); err != nil {
		return fmt.Errorf("at %s: %w", address, err)
	}
	return nil
}
