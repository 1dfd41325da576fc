// Package compat compares the behaviour of the supervisor with the behaviour that clients of
// Operator Lifecycle Manager rely on. The tests are clients: they write and read objects of the API
// server. They use no package of the supervisor except its constants.
//
// Package rules lists the rules. Each rule has one test case. docs/compatibility.md is generated
// from the list.
//
// Cases that need running pods are in package nodes.
//
// Without COMPAT_KUBECONFIG, the tests start a control plane and the program that they test. With
// COMPAT_MANAGER=olm, they test OLM. A case that fails there is wrong, or its rule names the difference. Command
// outcomes compares the results with the rules: each rule needs a case. With COMPAT_REST=full, the tests check only the
// rules with a rest period, and wait for all of it.
//
// With COMPAT_KUBECONFIG=FILE, the tests run in the cluster of that file, in which the supervisor or OLM runs. The
// catalogs and registries of the cases listen on 127.0.0.1, so the supervisor has to run on the same machine. Some rules
// need flags of the supervisor, which rules.Flags lists. The tests find them in the arguments of Deployments with the
// label app.kubernetes.io/name=chandlery-supervisor, or in COMPAT_FLAGS. Cases without their flag are skipped, and so are
// those that stop the supervisor or need images in a registry of the nodes. At the end, the tests delete the
// CustomResourceDefinitions that they created.
package compat
