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
// outcomes compares the results with the rules.
// With COMPAT_REST=full, they check only the rules with a rest period, and wait for all of it.
package compat
