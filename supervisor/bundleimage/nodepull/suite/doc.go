// Package suite tests pulls by nodes on a real API server, which checks the pods and the permissions of the supervisor.
// The tests are the kubelet: they write the status of pods and their logs.
package suite
