package server

import (
	"encoding/json"
	"fmt"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/compressed"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/manifest"
)

// preparedItem is a package in JSON, as a namespace shows it.
type preparedItem struct {
	// cells are the first cells of its row in tables, with a comma after each. The last one is the age.
	cells   []byte
	created metav1.Time
	// metadata and status are the JSON of the metadata and the beginning of that of the status, and rest is its end.
	metadata, status []byte
	rest             compressed.Text
	// selectable is the part of the metadata that selectors use.
	selectable metav1.ObjectMeta
}

// preparedList has the packages that a namespace shows; an empty namespace means all.
type preparedList struct {
	namespace string
	// changes is the number of changes of the index when the list was made.
	changes uint64
	items   []preparedItem
}

// lastList finds the last list again until the index changes, or until the garbage collector frees it: an idle process
// does not need it. It is safe for concurrent use.
type lastList struct {
	mu   sync.Mutex
	list weak.Pointer[preparedList]
}

// get returns the packages that a namespace shows; empty for all.
func (l *lastList) get(index *manifest.Index, namespace string) ([]preparedItem, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	changes := index.Changes()
	if last := l.list.Value(); last != nil && last.namespace == namespace && last.changes == changes {
		return last.items, nil
	}
	found := index.List(namespace)
	list := &preparedList{namespace: namespace, changes: changes, items: make([]preparedItem, 0, len(found))}
	for _, item := range found {
		prepared, err := prepare(item, namespace)
		if err != nil {
			return nil, err
		}
		list.items = append(list.items, prepared)
	}
	l.list = weak.Make(list)
	return list.items, nil
}

// prepare returns the JSON of a package.
func prepare(item manifest.Item, namespace string) (preparedItem, error) {
	p := object(item, namespace)
	metadata, err := json.Marshal(p.ObjectMeta)
	if err != nil {
		return preparedItem{}, fmt.Errorf("encoding the metadata of package %s: %w", p.Name, err)
	}
	status, rest, err := item.Package.StatusParts(item.Source)
	if err != nil {
		return preparedItem{}, err //nolint:wrapcheck // it names the package
	}
	name, err := json.Marshal(p.Name)
	if err != nil {
		return preparedItem{}, fmt.Errorf("encoding the name of package %s: %w", p.Name, err)
	}
	catalog, err := json.Marshal(item.Source.DisplayName)
	if err != nil {
		return preparedItem{}, fmt.Errorf("encoding the catalog of package %s: %w", p.Name, err)
	}
	return preparedItem{
		cells: fmt.Appendf(nil, "%s,%s,", name, catalog), created: p.CreationTimestamp, metadata: metadata, status: status, rest: rest,
		selectable: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, Labels: p.Labels},
	}, nil
}

// writeList writes the JSON of a list, as the encoder of the library does.
func writeList(body *compressed.Body, items []preparedItem) error {
	body.Plain(fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{},"items":[`, kind+"List", GroupVersion.String()))
	writePackages(body, items)
	body.Plain([]byte("]}\n"))
	return body.End() //nolint:wrapcheck // the caller adds what it sends
}

// writePackage writes the JSON of a package, as the encoder of the library does.
func writePackage(body *compressed.Body, items []preparedItem) error {
	writePackages(body, items)
	body.Plain([]byte("\n"))
	return body.End() //nolint:wrapcheck // the caller adds what it sends
}

// writePackages writes the JSON of packages with commas between them.
func writePackages(body *compressed.Body, items []preparedItem) {
	begin := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":`, kind, GroupVersion.String())
	var text []byte
	for i := range items {
		text = text[:0]
		if i > 0 {
			text = append(text, "},"...)
		}
		text = append(append(text, begin...), items[i].metadata...)
		text = append(append(text, `,"spec":{},"status":`...), items[i].status...)
		body.Plain(text)
		body.Text(items[i].rest)
	}
	if len(items) > 0 {
		body.Plain([]byte("}"))
	}
}

// writeTable writes the JSON of a table, as the encoder of the library does.
func writeTable(body *compressed.Body, items []preparedItem) error {
	definitions, err := json.Marshal(columns())
	if err != nil {
		return fmt.Errorf("encoding the columns of PackageManifests: %w", err)
	}
	version := metav1.SchemeGroupVersion.String()
	begin := fmt.Appendf(nil, `{"kind":"Table","apiVersion":%q,"metadata":{},"columnDefinitions":%s,"rows":[`, version, definitions)
	text := begin
	for i := range items {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(text, `{"cells":[`...), items[i].cells...)
		age := table.ConvertToHumanReadableDateType(items[i].created)
		text = fmt.Appendf(text, `%q],"object":{"kind":"PartialObjectMetadata","apiVersion":%q,"metadata":`, age, version)
		text = append(append(text, items[i].metadata...), "}}"...)
		if len(text) > bufferSize {
			body.Plain(text)
			text = text[:0]
		}
	}
	body.Plain(append(text, "]}\n"...))
	return body.End() //nolint:wrapcheck // the caller adds what it sends
}
