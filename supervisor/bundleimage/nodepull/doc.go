// Package nodepull lets a node pull a bundle image, for example by mirrors or credentials that only nodes have. A pod
// prints the manifests of the image to its log. Programs in the image never run: an init container copies Chandlery's
// registry, which prints the files.
//
// Mode decides when a node pulls, desiredPod and outcomeOf are the pod and its result, and Puller does the requests.
package nodepull
