// Package webhook reads and writes the objects through which the API server calls an operator:
// certificates, Services, RBAC, webhook configurations, API services, and the conversions in
// CustomResourceDefinitions.
//
// Package supervisor/webhook derives these objects and has no access to a cluster. An Observer reads
// the existing objects into a State. A Writer brings them to the desired state. Callers trust a
// certificate before pods use it, and the API server calls pods only when they serve.
package webhook
