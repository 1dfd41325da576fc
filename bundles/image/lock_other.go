//go:build !unix

package image

import "os"

// Without locks, processes must not share a store.
func lockShared(*os.File) error { return nil }

func lockExclusive(*os.File) error { return nil }
