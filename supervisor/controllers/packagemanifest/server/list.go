package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/compressed"
)

// bufferSize is the number of bytes that the server passes to a connection at once.
const bufferSize = 64 << 10

// fullLists answers requests for whole lists in JSON from compressed packages. The library would encode and compress
// them for each request, which takes ten times the processor time. All other requests, and errors, go to next. Requests that it gets
// are authenticated and authorized.
type fullLists struct {
	storage storage
	formats runtime.NegotiatedSerializer
	next    http.Handler
}

// ServeHTTP answers a request.
func (l *fullLists) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, found := request.RequestInfoFrom(r.Context())
	if !found || !isList(info) || !hasOnlyLimits(r) || !l.asksForJSON(r) {
		l.next.ServeHTTP(w, r)
		return
	}
	list, err := l.storage.list(request.WithNamespace(r.Context(), info.Namespace), nil)
	if err != nil {
		l.next.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.Header().Add("Vary", "Accept-Encoding")
	gzip := acceptsGzip(r.Header)
	if gzip {
		w.Header().Set("Content-Encoding", "gzip")
	}
	out := bufio.NewWriterSize(w, bufferSize)
	if err := errors.Join(writeList(compressed.NewBody(out, gzip), list), out.Flush()); err != nil {
		// The client notices that the JSON is incomplete.
		log.FromContext(r.Context()).Error(err, "Sending a list of PackageManifests")
	}
}

// isList reports whether a request lists PackageManifests.
func isList(info *request.RequestInfo) bool {
	return info.IsResourceRequest && info.Verb == "list" && info.APIGroup == GroupVersion.Group && info.APIVersion == GroupVersion.Version &&
		info.Resource == resource && info.Subresource == ""
}

// hasOnlyLimits reports whether a request has no parameters but those that do not affect its answer.
func hasOnlyLimits(r *http.Request) bool {
	for key, values := range r.URL.Query() {
		if key != "limit" {
			return false
		}
		for _, value := range values {
			if _, err := strconv.ParseInt(value, 10, 64); err != nil {
				return false
			}
		}
	}
	return true
}

// asksForJSON reports whether the answer to a request is JSON on one line. Clients that prefer tables also accept JSON.
func (l *fullLists) asksForJSON(r *http.Request) bool {
	if strings.Contains(r.Header.Get("Accept"), "as=") {
		return false
	}
	_, format, err := negotiation.NegotiateOutputMediaType(r, l.formats, negotiation.DefaultEndpointRestrictions)
	return err == nil && format.MediaType == runtime.ContentTypeJSON && format.Serializer != format.PrettySerializer
}

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

// writeList writes the JSON of a list, as the encoder of the library does.
func writeList(body *compressed.Body, list *PackageManifestList) error {
	body.Plain(fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{},"items":[`, kind+"List", GroupVersion.String()))
	for i := range list.Items {
		p := &list.Items[i]
		metadata, err := json.Marshal(p.ObjectMeta)
		if err != nil {
			return fmt.Errorf("encoding the metadata of package %s: %w", p.Name, err)
		}
		status, rest, err := p.Status.item.Package.StatusParts(p.Status.item.Source)
		if err != nil {
			return err //nolint:wrapcheck // it names the package
		}
		head := make([]byte, 0, len(metadata)+len(status)+200)
		if i > 0 {
			head = append(head, "},"...)
		}
		head = fmt.Appendf(head, `{"kind":%q,"apiVersion":%q,"metadata":%s,"spec":{},"status":%s`, kind, GroupVersion.String(), metadata, status)
		body.Plain(head)
		body.Text(rest)
	}
	if len(list.Items) > 0 {
		body.Plain([]byte("}"))
	}
	body.Plain([]byte("]}\n"))
	return body.End() //nolint:wrapcheck // the caller says what it sends
}
