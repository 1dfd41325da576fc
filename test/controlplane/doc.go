// Package controlplane runs a real Kubernetes control plane on one machine: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, and kwok in the place of the
// nodes. It listens on loopback only, needs no root, and leaves nothing behind.
//
// Everything but the nodes is what a cluster runs. kwok keeps the node objects and
// their leases alive and moves pods through their phases without starting processes,
// so that conditions, taints, evictions, garbage collection and roll-outs are those of
// the real controllers.
//
// A test package shares one control plane and each test has a namespace of its own:
//
//	func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, controlplane.Options{})) }
//
//	func TestSomething(t *testing.T) {
//		namespace := controlplane.Namespace(t)
//		config := controlplane.Get(t).Config()
//		…
//	}
//
// The programs are built on first use, which takes minutes; `go run
// ./test/controlplane/cluster build` does it apart.
package controlplane
