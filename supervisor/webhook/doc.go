// Package webhook computes the objects that the API server needs to call an operator. These are the
// certificates of its webhooks and aggregated APIs, their Services and roles, and the configurations of the
// calls. It reads and writes nothing.
//
// Names, labels and paths are the same as in existing clusters, so that objects of another lifecycle manager
// are taken over. That manager used one name for two namespaces in some places. There the namespace is part of
// the name.
//
// Two rules determine the order of changes. First, a caller must never meet a certificate whose authority it
// does not know. A new certificate is thus announced before it is used, and an old authority is trusted until
// the last pod has stopped using it (Certificate). Second, an object must never be stored in the form of one
// version under the name of another. A working conversion thus remains until its successor has answered
// (Conversion).
package webhook
