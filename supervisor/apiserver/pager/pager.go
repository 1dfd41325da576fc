// Package pager lists objects at the API server in small pages, so that a process has few objects of tenants in
// memory.
package pager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// wholeObjects is the number of objects in a page. A tenant may create an object whose encoding has 1.5 MB and
	// that takes 70 MiB of memory once it is decoded.
	wholeObjects = 4
	// metadata is the number of objects in a page of metadata, each of which takes up to 14 MiB of memory.
	metadata = 16
)

// reading has an element while a page is in use.
var reading = make(chan struct{}, 1)

// EachPage lists objects and calls visit with each page until it returns false. newPage returns an empty list. A
// page has 4 objects, or 16 if they are metadata.
//
// Only one page of the process is in use at a time. Visit must not keep the page and must not read another one.
func EachPage[L client.ObjectList](
	ctx context.Context, reader client.Reader, newPage func() L, visit func(page L) (more bool), opts ...client.ListOption,
) error {
	more, token := true, ""
	for first := true; more && (first || token != ""); first = false {
		var err error
		token, err = ReadPage(ctx, reader, newPage(), func(page L) { more = visit(page) }, append(slices.Clip(opts), client.Continue(token))...)
		if err != nil {
			return err
		}
	}
	return nil
}

// ReadPage reads the page that begins at the token of a Continue option, or the first one. It calls use with the
// page and returns the token of the next page, which is empty after the last one. The size of the page and the
// conditions for use are those of EachPage.
//
// If the API server no longer has the state of the list, the page and those after it are of the newest state.
func ReadPage[L client.ObjectList](
	ctx context.Context, reader client.Reader, page L, use func(page L), opts ...client.ListOption,
) (next string, err error) {
	select {
	case reading <- struct{}{}:
		defer func() { <-reading }()
	case <-ctx.Done():
		return "", fmt.Errorf("waiting until another list has been read: %w", ctx.Err())
	}
	opts = append(slices.Clip(opts), client.Limit(sizeOf(page)))
	err = reader.List(ctx, page, opts...)
	if token := newestState(err); token != "" {
		err = reader.List(ctx, page, append(opts, client.Continue(token))...)
	}
	if err != nil {
		return "", err
	}
	use(page)
	return strings.Clone(page.GetContinue()), nil
}

// sizeOf returns the number of objects in a page.
func sizeOf(page client.ObjectList) int64 {
	if _, ok := page.(*metav1.PartialObjectMetadataList); ok {
		return metadata
	}
	return wholeObjects
}

// newestState returns the token from the error of an expired list, which continues the list at its newest state.
// It is empty for other errors.
func newestState(err error) string {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsResourceExpired(err) {
		return ""
	}
	return status.ErrStatus.Continue
}
