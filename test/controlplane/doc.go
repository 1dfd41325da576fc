// Package controlplane runs a real Kubernetes control plane on one machine: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, and kwok, which simulates the nodes. It listens on
// loopback only, needs no root, and leaves nothing behind.
//
// Everything except the nodes is real. kwok renews the node objects and their leases and moves pods
// through their phases without starting processes. Conditions, taints, evictions, garbage
// collection and rollouts come from the real controllers. Those of volumes and certificates run with real nodes only.
//
// The tests of a package share one control plane, and each test has its own namespace:
//
//	func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, controlplane.Options{})) }
//
//	func TestSomething(t *testing.T) {
//		namespace := controlplane.Namespace(t)
//		config := controlplane.Get(t).Config()
//		…
//	}
//
// The programs are built on first use, which takes minutes. `go run ./test/controlplane/cluster
// build` builds them in advance.
package controlplane
