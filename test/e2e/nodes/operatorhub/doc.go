// Package operatorhub tests what new users do first, on real nodes with the files of a release: the commands that
// OperatorHub.io prints, operator-sdk and kubectl-operator.
//
// The registry of the nodes answers for quay.io. It has a catalog in an image like that of OperatorHub.io, on opm, with
// bundle images and images of operators. The containerd of each node and the supervisors reach it by their settings for
// mirrors. A server on this machine answers for https://operatorhub.io.
package operatorhub
