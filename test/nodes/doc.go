// Package nodes runs a Kubernetes cluster with real nodes on one Linux machine, as root:
// the control plane of test/controlplane, and for each node a containerd, a kubelet and a
// kube-proxy, so that pods are processes, images are pulled and a node can be lost.
//
// A node is a network namespace with a cable (a veth) to one bridge, and process and
// mount namespaces that end with their first process. Killing that process is what a
// power cut is to a machine: nothing of the node runs on, nothing says good-bye (its cable
// is pulled first), and what it had mounted is gone. Lose does that and Return switches
// the node on again, with the disk it had.
//
// There are routes between the nodes, the pods of all nodes and this machine. Beside the
// nodes there is the client, a machine without a kubelet: what runs there (Command) uses
// ClusterIPs through a kube-proxy that no lost node takes away.
//
// Every image comes from a registry on the bridge, whatever host its name begins with:
// what Push stores as chandlery/registry:dev is what a pod gets for that name, for
// quay.io/chandlery/registry:dev and for the registry's own address. Network policies are
// accepted and have no effect: nothing on the nodes enforces them. Names of Services are
// not resolved: there is no DNS.
//
// The names of namespaces, links and control groups start with "chandlery", and there is
// one bed on a machine at a time: Start waits for another to stop, and first removes what
// one that was killed left behind.
//
// A test package shares one bed:
//
//	func TestMain(m *testing.M) { os.Exit(nodes.Main(m, nodes.Options{})) }
//
//	func TestSomething(t *testing.T) {
//		bed := nodes.Get(t)
//		namespace := bed.Namespace(t)
//		…
//	}
//
// Where the machine cannot run nodes, because the user is not root or a program is
// missing, Main says so: in CI ($CI is set) as a failure, else the tests are skipped.
package nodes
