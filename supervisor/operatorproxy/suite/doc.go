// Package suite runs the supervisor with proxies for image registries and for operators.
package suite
