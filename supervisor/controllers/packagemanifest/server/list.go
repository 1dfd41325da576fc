package server

import (
	"bufio"
	"errors"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/compressed"
)

// bufferSize is the number of bytes that the server passes to a connection at once.
const bufferSize = 64 << 10

// preparedLists answers requests for lists and tables in JSON from prepared packages. The library would encode and
// compress them for each request, which takes ten times the processor time. All other requests, and errors, go to next.
// Requests that it gets are authenticated and authorized.
type preparedLists struct {
	storage storage
	formats runtime.NegotiatedSerializer
	next    http.Handler
	last    *lastList
}

// ServeHTTP answers a request.
func (l *preparedLists) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, found := request.RequestInfoFrom(r.Context())
	if !found || !isList(info) || !l.storage.index.Ready() {
		l.next.ServeHTTP(w, r)
		return
	}
	selected, selectorsKnown := selectionOf(r)
	write, formatKnown := l.writerFor(r)
	if !selectorsKnown || !formatKnown {
		l.next.ServeHTTP(w, r)
		return
	}
	items, err := l.last.get(l.storage.index, info.Namespace)
	if err != nil {
		l.next.ServeHTTP(w, r)
		return
	}
	items = selectItems(items, selected)
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.Header().Add("Vary", "Accept-Encoding")
	gzip := acceptsGzip(r.Header)
	if gzip {
		w.Header().Set("Content-Encoding", "gzip")
	}
	out := bufio.NewWriterSize(w, bufferSize)
	if err := errors.Join(write(compressed.NewBody(out, gzip), items), out.Flush()); err != nil {
		// The client notices that the JSON is incomplete.
		log.FromContext(r.Context()).Error(err, "Sending a list of PackageManifests")
	}
}

// isList reports whether a request lists PackageManifests.
func isList(info *request.RequestInfo) bool {
	return info.IsResourceRequest && info.Verb == "list" && info.APIGroup == GroupVersion.Group && info.APIVersion == GroupVersion.Version &&
		info.Resource == resource && info.Subresource == ""
}

// selectItems returns the selected items.
func selectItems(items []preparedItem, selected selection) []preparedItem {
	if selected.labels.Empty() && selected.fields.Empty() {
		return items
	}
	var found []preparedItem
	for i := range items {
		if selected.matches(&items[i].selectable) {
			found = append(found, items[i])
		}
	}
	return found
}

// writerFor returns how to write the answer to a request; known is false if it is neither a list nor a table in JSON on one
// line.
func (l *preparedLists) writerFor(r *http.Request) (write func(*compressed.Body, []preparedItem) error, known bool) {
	options, format, err := negotiation.NegotiateOutputMediaType(r, l.formats, transforms{})
	if err != nil || format.MediaType != runtime.ContentTypeJSON || format.Serializer == format.PrettySerializer {
		return nil, false
	}
	switch {
	case options.Convert == nil:
		return writeList, true
	case *options.Convert == metav1.SchemeGroupVersion.WithKind("Table"):
		return writeTable, true
	default:
		return nil, false
	}
}

// transforms are the transformations that the library offers to clients.
type transforms struct{}

// AllowsMediaTypeTransform reports whether the library has a transformation, or the format without one.
func (transforms) AllowsMediaTypeTransform(_, _ string, target *schema.GroupVersionKind) bool {
	return target == nil || target.Group == metav1.GroupName
}

// AllowsServerVersion returns false, as the library does.
func (transforms) AllowsServerVersion(string) bool { return false }

// AllowsStreamSchema returns true for watches, as the library does.
func (transforms) AllowsStreamSchema(s string) bool { return s == "watch" }

// acceptsGzip reports whether a client accepts the content coding gzip (RFC 9110, section 12.5.3).
func acceptsGzip(header http.Header) bool {
	for _, value := range header.Values("Accept-Encoding") {
		for one := range strings.SplitSeq(value, ",") {
			name, parameters, _ := strings.Cut(one, ";")
			if strings.TrimSpace(name) != "gzip" {
				continue
			}
			_, quality, _ := strings.Cut(parameters, "q=")
			weight, err := strconv.ParseFloat(strings.TrimSpace(quality), 32)
			return err != nil || weight > 0
		}
	}
	return false
}
