// Package suite uninstalls the product from a control plane in each documented way, and installs
// it again.
package suite
