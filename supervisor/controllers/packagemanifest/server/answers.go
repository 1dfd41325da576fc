package server

import (
	"bufio"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/compressed"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/manifest"
)

// bufferSize is the number of bytes that the server passes to a connection at once.
const bufferSize = 64 << 10

// preparedAnswers answers requests for packages, lists and tables in JSON from prepared packages, package by package. The
// library would encode and compress them for each request, which takes ten times the processor time, and the memory of a whole
// answer. All other requests, and errors, go to next. Requests that it gets are authenticated and authorized.
type preparedAnswers struct {
	storage storage
	formats runtime.NegotiatedSerializer
	next    http.Handler
	last    *lastList
	// lists and packages limit the answers of next that contain whole packages.
	lists, packages *encodings
}

// newPreparedAnswers returns a handler for the packages of an index. Other requests go to next.
func newPreparedAnswers(index *manifest.Index, formats runtime.NegotiatedSerializer, next http.Handler) *preparedAnswers {
	return &preparedAnswers{
		storage: storage{index: index}, formats: formats, next: next, last: &lastList{}, lists: newEncodings(), packages: newEncodings(),
	}
}

// ServeHTTP answers a request.
func (a *preparedAnswers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, found := request.RequestInfoFrom(r.Context())
	if !found || r.Method != http.MethodGet || !isRead(info) || !a.storage.index.Ready() {
		a.next.ServeHTTP(w, r)
		return
	}
	options, format, err := negotiation.NegotiateOutputMediaType(r, a.formats, transforms{})
	if err != nil {
		a.next.ServeHTTP(w, r)
		return
	}
	var write writer
	var items []preparedItem
	// The library indents JSON for browsers too. Here only the parameter pretty has this effect.
	if format.MediaType == runtime.ContentTypeJSON {
		write, items = a.prepared(r, info, options.Convert)
	}
	if write != nil {
		send(w, r, write, items)
		return
	}
	if limit := a.limitOf(r, info, options.Convert); limit != nil {
		release, err := limit.acquire(r.Context(), info.Namespace)
		if err != nil {
			responsewriters.ErrorNegotiated(err, a.formats, GroupVersion, w, r)
			return
		}
		defer release()
	}
	a.next.ServeHTTP(w, r)
}

// isRead reports whether a request gets or lists PackageManifests.
func isRead(info *request.RequestInfo) bool {
	return info.IsResourceRequest && (info.Verb == "list" || info.Verb == "get") && info.APIGroup == GroupVersion.Group &&
		info.APIVersion == GroupVersion.Version && info.Resource == resource && info.Subresource == ""
}

// writer writes the JSON of an answer.
type writer func(*compressed.Body, []preparedItem) error

// prepared returns how to write the answer to a request, and its packages. The writer is nil if the library answers.
func (a *preparedAnswers) prepared(r *http.Request, info *request.RequestInfo, convert *schema.GroupVersionKind) (writer, []preparedItem) {
	if info.Verb == "get" {
		item, found := a.storage.index.Get(info.Namespace, info.Name)
		if !found || convert != nil || hasParameters(r) {
			return nil, nil
		}
		prepared, err := prepare(item, info.Namespace)
		if err != nil {
			return nil, nil
		}
		return writePackage, []preparedItem{prepared}
	}
	write := writer(writeList)
	if convert != nil {
		if *convert != metav1.SchemeGroupVersion.WithKind("Table") {
			return nil, nil
		}
		write = writeTable
	}
	selected, known := selectionOf(r)
	if !known {
		return nil, nil
	}
	items, err := a.last.get(a.storage.index, info.Namespace)
	if err != nil {
		return nil, nil
	}
	return write, selectItems(items, selected)
}

// limitOf returns the limit of an answer of the library. It is nil for small answers: without the status of packages, or with
// a small package.
func (a *preparedAnswers) limitOf(r *http.Request, info *request.RequestInfo, convert *schema.GroupVersionKind) *encodings {
	included := slices.Contains(r.URL.Query()["includeObject"], string(metav1.IncludeObject))
	if convert != nil && !included {
		return nil
	}
	if info.Verb == "list" {
		return a.lists
	}
	item, found := a.storage.index.Get(info.Namespace, info.Name)
	if !found {
		return nil
	}
	if _, rest, err := item.Package.StatusParts(item.Source); err == nil && rest.Size() <= smallPackage {
		return nil
	}
	return a.packages
}

// send sends packages with a writer.
func send(w http.ResponseWriter, r *http.Request, write writer, items []preparedItem) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.Header().Add("Vary", "Accept-Encoding")
	gzip := acceptsGzip(r.Header)
	if gzip {
		w.Header().Set("Content-Encoding", "gzip")
	}
	out := bufio.NewWriterSize(w, bufferSize)
	if err := errors.Join(write(compressed.NewBody(out, gzip), items), out.Flush()); err != nil {
		// The client notices that the JSON is incomplete.
		log.FromContext(r.Context()).Error(err, "Sending PackageManifests")
	}
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
