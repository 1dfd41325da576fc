// Package packagemanifest serves the packages of all catalogs as the API packages.operators.coreos.com/v1.
//
// Every supervisor reads the catalogs and serves the API. The leader makes the serving certificate, and applies the
// APIService once its own server answers. An APIService without a server would stop the deletion of namespaces in the
// whole cluster, so the leader deletes it when the supervisor is uninstalled.
//
// Processes of another Deployment can serve the API instead: see Only.
package packagemanifest
