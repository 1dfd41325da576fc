package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/chandlery/chandlery/internal/keylimit"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/manifest"
)

// Limits of the reading of icons. A catalog sends the whole head of a channel, which can have megabytes. The namespace of a
// catalog is the key, so slow catalogs of one namespace do not block those of others.
const (
	maxIconReads             = 2
	maxIconReadsPerNamespace = 1
	// iconTimeout limits how long icons are waited for and read.
	iconTimeout = 20 * time.Second
	// maxIcon is the maximum size of an icon in base64. API servers store no larger ClusterServiceVersion.
	maxIcon = 3 << 19
)

// IconReader reads the icon of a package from its catalog.
type IconReader func(ctx context.Context, item manifest.Item) (manifest.Icon, error)

// icons answers requests for icons. Equal requests share a read. It is safe for concurrent use.
type icons struct {
	index *manifest.Index
	read  IconReader
	limit *keylimit.Limiter
	calls singleflight.Group
}

func newIcons(index *manifest.Index, read IconReader) *icons {
	return &icons{index: index, read: read, limit: keylimit.New(maxIconReads, maxIconReadsPerNamespace)}
}

var _ rest.Connecter = &icons{}

// New returns an empty object.
func (*icons) New() runtime.Object { return &PackageManifest{} }

// Destroy does nothing.
func (*icons) Destroy() {}

// ConnectMethods returns the methods of HTTP.
func (*icons) ConnectMethods() []string { return []string{http.MethodGet} }

// NewConnectOptions returns no options.
func (*icons) NewConnectOptions() (options runtime.Object, path bool, pathParameter string) {
	return nil, false, ""
}

// Connect returns a handler that sends the icon of a package.
func (i *icons) Connect(ctx context.Context, name string, _ runtime.Object, responder rest.Responder) (http.Handler, error) {
	item, err := find(ctx, i.index, name)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tag := tagOf(item)
		w.Header().Set("ETag", tag)
		// The icon of a package changes with the head of its default channel.
		w.Header().Set("Cache-Control", "private, max-age=60")
		if hasTag(r.Header.Get("If-None-Match"), tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		content, mediaType, err := i.content(r.Context(), item)
		if err != nil {
			w.Header().Del("ETag")
			w.Header().Del("Cache-Control")
			responder.Error(err)
			return
		}
		w.Header().Set("Content-Type", mediaType)
		// The content comes from a catalog. A browser that opens it must not run scripts.
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}), nil
}

// content returns the icon of a package, or a drawing if the package has none or one that is too large.
func (i *icons) content(ctx context.Context, item manifest.Item) (content []byte, mediaType string, err error) {
	if item.Package.Icon == (manifest.IconSource{}) {
		return []byte(drawing), drawingType, nil
	}
	icon, err := i.readShared(ctx, item)
	if err != nil {
		return nil, "", unavailable("reading the icon from the catalog failed: " + err.Error())
	}
	if len(icon.Data) > maxIcon {
		return []byte(drawing), drawingType, nil
	}
	// As many bytes as can be decoded are an icon, too.
	content, _ = io.ReadAll(base64.NewDecoder(base64.StdEncoding, strings.NewReader(icon.Data)))
	return content, icon.MediaType, nil
}

// readShared reads the icon of a package when there is a slot. Concurrent calls for the same head share the read.
func (i *icons) readShared(ctx context.Context, item manifest.Item) (manifest.Icon, error) {
	key := fmt.Sprintf("%s/%s %s %+v", item.Source.Namespace, item.Source.Name, item.Package.Name, item.Package.Icon)
	done := i.calls.DoChan(key, func() (any, error) {
		// A caller that cancels does not cancel the read of the others.
		reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), iconTimeout)
		defer cancel()
		release, err := i.limit.Acquire(reading, item.Source.Namespace)
		if err != nil {
			return manifest.Icon{}, fmt.Errorf("waiting for other icons: %w", err)
		}
		defer release()
		return i.read(reading, item)
	})
	select {
	case result := <-done:
		icon, _ := result.Val.(manifest.Icon)
		return icon, result.Err
	case <-ctx.Done():
		return manifest.Icon{}, fmt.Errorf("waiting for the icon: %w", context.Cause(ctx))
	}
}

// tagOf returns the entity tag of the icon of a package.
func tagOf(item manifest.Item) string {
	return `"` + strings.Join([]string{item.Package.Name, item.Package.Icon.Channel, item.Package.Icon.CSV}, ".") + `"`
}

// hasTag reports whether a list of entity tags in a header has a tag.
func hasTag(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if strings.TrimPrefix(strings.TrimSpace(one), "W/") == tag {
			return true
		}
	}
	return false
}

const drawingType = "image/svg+xml"

// drawing is the icon of packages that have none: a parcel.
const drawing = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><path d="M8 20 32 8l24 12v24L32 56 8 44z" fill="#d2d6da"/>` +
	`<path d="M8 20l24 12 24-12M32 32v24" fill="none" stroke="#8a9199" stroke-width="3"/></svg>`
