// Package sources decides which registries are asked for an image, in which order, and with which certificates. It
// reads the formats that nodes use: registries.conf of CRI-O and Podman, hosts.toml of containerd, and certs.d.
//
// A [Table] holds the rules of one origin. Input that is not valid in every part is refused as a whole, with an
// [*InvalidError].
package sources
