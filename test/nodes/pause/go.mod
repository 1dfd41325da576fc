// The program that keeps the namespaces of a pod, built by test/buildcache apart from
// the product.
module github.com/chandlery/chandlery/test/nodes/pause

go 1.26.3
