// Package farewell makes API servers close their connections to terminating pods of conversion webhooks in
// time.
//
// API servers keep their connections to a webhook open. A pod that ends closes its side, and a request in
// flight then fails. It is not sent again, since the pod may have served it. Pods of conversion webhooks
// therefore continue for a while after their termination starts (webhook.AddLinger). When no new connection
// reaches them any more, this controller changes a line in the definition that has no other meaning. API
// servers then open new connections and stop using the old ones.
//
// The controller is keyed by Service. It reads the EndpointSlices of operators, the versions that own them, and
// the definitions that these convert.
package farewell
