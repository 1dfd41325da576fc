// Package nodes runs a Kubernetes cluster with real nodes on one Linux machine, as root: the
// control plane of test/controlplane, and for each node a containerd, a kubelet and a kube-proxy.
// Pods are processes, images are pulled, and a node can be lost.
//
// A node is a network namespace with a veth pair to one bridge, and process and mount namespaces
// that end with their first process. Killing that process is like a power cut: all processes of the
// node end, no connection is closed (its link is set down first), and its mounts disappear. Lose
// does this, and Return starts the node again with its old disk.
//
// There are routes between the nodes, the pods of all nodes and this machine. In addition there is
// the client, a machine without a kubelet. Programs there (Command) use ClusterIPs through a
// kube-proxy that remains when a node is lost.
//
// Every image comes from a registry on the bridge, whatever host its name has. After Push stores
// chandlery/registry:dev, a pod gets this image by that name, by quay.io/chandlery/registry:dev and
// by the registry's own address. Only images whose names have a port of 127.0.0.1 come from a registry
// of a test at that port of this machine. Network policies have no effect, because nothing on the nodes
// enforces them. There is no DNS, so names of Services are not resolved.
//
// The names of namespaces, links and control groups start with "chandlery", and a machine has one
// bed at a time. Start waits until another one has stopped, and removes what a killed one has left.
//
// The tests of a package share one bed:
//
//	func TestMain(m *testing.M) { os.Exit(nodes.Main(m, nodes.Options{})) }
//
//	func TestSomething(t *testing.T) {
//		bed := nodes.Get(t)
//		namespace := bed.Namespace(t)
//		…
//	}
//
// If the machine cannot run nodes, because the user is not root or a program is missing, Main fails
// in CI ($CI is set). Elsewhere the tests are skipped.
package nodes
