package image

import (
	"errors"
	"fmt"
	"slices"
)

// foreignError is an answer that a registry does not give.
type foreignError struct {
	// host is the server that answered.
	host string
	err  error
}

// Error returns the text of the cause.
func (f *foreignError) Error() string { return f.err.Error() }

// Unwrap returns the cause.
func (f *foreignError) Unwrap() error { return f.err }

// isForeign reports whether an answer is none of a registry. Another source may have the image.
func isForeign(err error) bool {
	_, is := errors.AsType[*foreignError](err)
	return is
}

// Remedy returns what to do about an error of an image for which the reason is too general; empty for other errors.
func Remedy(err error) string {
	switch ReasonOf(err) {
	case ReasonBlocked:
		return remedyForSkipped(err)
	case ReasonUnauthorized:
		if private, ok := errors.AsType[*privateServiceError](err); ok {
			return private.remedy()
		}
	case ReasonInvalid, ReasonTooLarge, ReasonUnreachable:
		if proxy, ok := errors.AsType[*proxyError](err); ok {
			return proxy.remedy()
		}
		if foreign, ok := errors.AsType[*foreignError](err); ok {
			return fmt.Sprintf("check that %s is the address of a registry", foreign.host)
		}
	default:
	}
	return ""
}

// remedyForSkipped returns the remedy if a place is not blocked, and is not asked because of the form of the reference.
func remedyForSkipped(err error) string {
	skipped, ok := errors.AsType[*SourcesError](err)
	if !ok || !slices.ContainsFunc(skipped.Skipped, func(s Skipped) bool { return !s.Blocked }) {
		return ""
	}
	if known, ok := errors.AsType[*Error](err); ok && IsDigest(known.Reference) {
		return "allow digests at a place that was not asked: capability pull in hosts.toml, pull-from-mirror in registries.conf"
	}
	return "name the image by digest, or allow tags at a place that was not asked: capability resolve in hosts.toml, pull-from-mirror in registries.conf"
}
