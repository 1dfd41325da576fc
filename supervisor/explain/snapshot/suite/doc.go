// Package suite tests package snapshot on a real kube-apiserver, as users with different permissions.
package suite
