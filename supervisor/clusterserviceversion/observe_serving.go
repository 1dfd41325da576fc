package clusterserviceversion

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// observeServing reads everything about what the version serves through the API
// server. It comes before the Deployments are derived, which mount certificates.
func (r *reconciler) observeServing(_ context.Context, s *scope, _ csvs) error { //nolint:unparam // It will read.
	var fields []string
	if n := len(s.CSV.Spec.WebhookDefinitions); n > 0 {
		fields = append(fields, fmt.Sprintf("admission or conversion webhooks (spec.webhookdefinitions has %d)", n))
	}
	if n := len(s.CSV.Spec.APIServiceDefinitions.Owned); n > 0 {
		fields = append(fields, fmt.Sprintf("owned API services (spec.apiservicedefinitions.owned has %d)", n))
	}
	if len(fields) > 0 {
		s.Serving.Unsupported = "this version does not support " + strings.Join(fields, ", nor ")
	}
	return nil
}

// observeSwitch completes what is known of serving with what depends on the state
// of the Deployments.
func (r *reconciler) observeSwitch(context.Context, *scope) error { return nil }

// mount gives a Deployment the certificates that it serves with.
func (s *scope) mount(*appsv1.Deployment) {}
