// Package webhook knows what an operator needs so that the API server can call
// it: the certificates with which its webhooks and aggregated APIs answer, the
// Services through which they are reached, the roles that go with them, and the
// configurations that make the API server call. It reads and writes nothing.
//
// Names, labels and paths are those that operators and tools know from existing
// clusters, so that what another lifecycle manager made there is taken over. Where
// that manager used one name for two namespaces, the namespace is part of the name
// here.
//
// Two things must never happen, and their order is why this package is a package:
// a caller must never meet a certificate that it has no authority for, and an object
// must never be stored in the form of one version under the name of another. The
// first is why a new certificate is made known before it is used and an old authority
// is believed until the last pod has let go of it (Certificate). The second is why a
// conversion that works is kept until the one that follows it has answered
// (Conversion).
package webhook
