package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/manifest"
)

// IconReader reads the icon of a package from its catalog.
type IconReader func(ctx context.Context, item manifest.Item) (manifest.Icon, error)

// icons answers requests for icons.
type icons struct {
	index *manifest.Index
	read  IconReader
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

// content returns the icon of a package, or a drawing if the package has none.
func (i *icons) content(ctx context.Context, item manifest.Item) (content []byte, mediaType string, err error) {
	if item.Package.Icon == (manifest.IconSource{}) {
		return []byte(drawing), drawingType, nil
	}
	icon, err := i.read(ctx, item)
	if err != nil {
		return nil, "", apierrors.NewServiceUnavailable("reading the icon from the catalog failed: " + err.Error())
	}
	// As many bytes as can be decoded are an icon, too.
	content, _ = io.ReadAll(base64.NewDecoder(base64.StdEncoding, strings.NewReader(icon.Data)))
	return content, icon.MediaType, nil
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
