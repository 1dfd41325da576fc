// Package server serves PackageManifests as an aggregated API, with the library of kube-apiserver.
//
// It answers requests that kube-apiserver forwards, and no others. Discovery is answered without any catalog.
package server
