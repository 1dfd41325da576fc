package clusterserviceversion

import "context"

// serve applies what Deployments that serve the API server need to start.
func (r *reconciler) serve(context.Context, *scope) error { return nil }

// switchOver tells the API server to use what the Deployments serve.
func (r *reconciler) switchOver(context.Context, *scope) error { return nil }

// unserve takes back what CustomResourceDefinitions say about how csv converts
// their objects, and says what cannot be taken back and why; empty when nothing
// is left.
func (r *reconciler) unserve(context.Context, *cleanup) (string, error) { return "", nil }
