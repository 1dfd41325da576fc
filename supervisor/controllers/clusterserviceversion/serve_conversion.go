package clusterserviceversion

import (
	"bytes"
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

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

const (
	// handshakeTimeout bounds one call of a conversion webhook.
	handshakeTimeout = 3 * time.Second
	// answerSize bounds the bytes that are read of an answer to an empty review.
	answerSize = 64 << 10
)

// observeConversions reports in SwitchDue whether definitions need a change for the version's
// webhooks. It first calls the webhooks that have to answer before the change.
func (r *reconciler) observeConversions(ctx context.Context, s *scope) error {
	asks := s.Components.Healthy() && slices.Contains([]operatorsv1alpha1.ClusterServiceVersionPhase{
		operatorsv1alpha1.CSVPhaseInstalling, operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVPhaseFailed,
	}, s.CSV.Status.Phase)
	for _, c := range webhook.Conversions(s.CSV, s.served.servers, s.served.certs) {
		crd, in, err := r.readConversion(ctx, s, c)
		if err != nil {
			return err
		}
		if crd == nil {
			continue // reported as a requirement
		}
		if named := namedService(crd); named != nil && *named == serviceOf(c) {
			s.Serving.Converts = append(s.Serving.Converts, c.CRD)
		}
		change, waits := c.Next(crd, in)
		s.Serving.SwitchDue = s.Serving.SwitchDue || change != nil
		if !waits || !asks {
			continue
		}
		if trouble := r.ask(ctx, s, c.Deployment); trouble != nil {
			first(&s.Serving.Waiting, fmt.Sprintf("waiting for the conversion webhook of deployment %s to answer: %v", c.Deployment, trouble))
			s.Serving.Asking = true
			continue
		}
		s.Serving.SwitchDue = true
	}
	return nil
}

// readConversion returns a definition, nil if there is none, and the circumstances of a change of
// its conversion.
func (r *reconciler) readConversion(ctx context.Context, s *scope, c webhook.Conversion,
) (*apiextensionsv1.CustomResourceDefinition, webhook.Circumstances, error) {
	in := webhook.Circumstances{Answers: s.served.answers[c.Deployment]}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := r.crds.Get(ctx, client.ObjectKey{Name: c.CRD}, crd)
	if apierrors.IsNotFound(err) {
		return nil, in, nil
	}
	if err != nil {
		return nil, in, fmt.Errorf("getting CustomResourceDefinition %s: %w", c.CRD, err)
	}
	named := namedService(crd)
	if named == nil || *named == serviceOf(c) {
		return crd, in, nil
	}
	service := &metav1.PartialObjectMetadata{}
	service.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	err = r.live.Get(ctx, *named, service)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, in, fmt.Errorf("getting Service %s: %w", named, err)
	}
	in.Orphaned = err != nil
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

// convertConversions changes the conversions of the definitions that may be changed now.
func (r *reconciler) convertConversions(ctx context.Context, s *scope) error {
	for _, c := range webhook.Conversions(s.CSV, s.served.servers, s.served.certs) {
		crd, in, err := r.readConversion(ctx, s, c)
		if err != nil {
			return err
		}
		if crd == nil {
			continue
		}
		change, _ := c.Next(crd, in)
		if change == nil {
			continue
		}
		if err := r.guardConversion(ctx, s, crd); err != nil {
			return err
		}
		if err := patchConversion(ctx, r.client, crd, change); err != nil {
			return err
		}
	}
	return nil
}

// patchConversion writes a change of the conversion of a definition.
func patchConversion(ctx context.Context, c client.Client, crd *apiextensionsv1.CustomResourceDefinition, change *webhook.Change) error {
	body, err := change.Patch(crd)
	if err != nil {
		return err
	}
	target := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}}
	if err := c.Patch(ctx, target, client.RawPatch(types.JSONPatchType, body), client.FieldOwner(api.FieldManager)); err != nil {
		return fmt.Errorf("changing the conversion of CustomResourceDefinition %s: %w", crd.Name, err)
	}
	logf.FromContext(ctx).Info("Changed how custom resources are converted", "crd", crd.Name, "conversion", change.Conversion != nil, "storage", change.Storage)
	return nil
}

// ask calls the conversion webhooks of a Deployment at each of its pods, and records when all have
// answered.
func (r *reconciler) ask(ctx context.Context, s *scope, deployment string) error {
	if s.served.answers[deployment] {
		return nil
	}
	i := slices.IndexFunc(s.served.servers, func(server webhook.Server) bool { return server.Deployment == deployment })
	server := s.served.servers[i]
	calls, err := webhook.Calls(server, s.CSV.Namespace, s.served.certs[deployment])
	if err != nil {
		return err
	}
	var endpoints discoveryv1.EndpointSliceList
	err = r.live.List(ctx, &endpoints, client.InNamespace(s.CSV.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: server.ServiceName()})
	if err != nil {
		return fmt.Errorf("listing the endpoints of Service %s/%s: %w", s.CSV.Namespace, server.ServiceName(), err)
	}
	var silent error
	for _, c := range calls {
		addresses := webhook.Addresses(endpoints.Items, c.Port)
		if len(addresses) == 0 {
			return fmt.Errorf("service %s/%s has no ready pods on port %d", s.CSV.Namespace, server.ServiceName(), c.Port)
		}
		for _, address := range addresses {
			err := call(ctx, c, address)
			pod := listener{s.CSV.UID, deployment, address}
			if !webhook.Unreachable(err) {
				r.silences.ends(pod)
				if err != nil {
					return err
				}
				continue
			}
			if r.silences.lasts(pod, s.Now) < unreachableTime {
				silent = err
				continue
			}
			logf.FromContext(ctx).Info("Taking a conversion webhook that cannot be reached from here as ready", "deployment", deployment, "address", address, "error", err.Error())
		}
	}
	s.served.answers[deployment] = silent == nil
	return silent
}

// call sends a review without objects to one pod, under the name of its Service.
func call(ctx context.Context, c webhook.Call, address string) error {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
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
		return fmt.Errorf("calling %s: %w", address, webhook.Steady(err))
	}
	defer func() { _ = reply.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(reply.Body, answerSize))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", address, webhook.Steady(err))
	}
	if err := c.Answered(reply.StatusCode, body); err != nil {
		return fmt.Errorf("at %s: %w", address, err)
	}
	return nil
}
