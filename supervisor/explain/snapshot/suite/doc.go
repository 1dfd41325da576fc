// Package suite tests package snapshot on a real kube-apiserver, as users with different
// rights.
package suite
