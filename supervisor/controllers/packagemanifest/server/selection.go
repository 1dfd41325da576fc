package server

import (
	"net/http"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Fields that a field selector can name.
const (
	fieldName      = "metadata.name"
	fieldNamespace = "metadata.namespace"
)

// selection selects packages by their labels and fields.
type selection struct {
	labels labels.Selector
	fields fields.Selector
}

// newSelection returns the selection of options of the library; nil selects all.
func newSelection(options *internalversion.ListOptions) selection {
	s := selection{labels.Everything(), fields.Everything()}
	if options != nil && options.LabelSelector != nil {
		s.labels = options.LabelSelector
	}
	if options != nil && options.FieldSelector != nil {
		s.fields = options.FieldSelector
	}
	return s
}

// matches reports whether a package with this metadata is selected.
func (s selection) matches(meta *metav1.ObjectMeta) bool {
	return s.fields.Matches(fields.Set{fieldName: meta.Name, fieldNamespace: meta.Namespace}) && s.labels.Matches(labels.Set(meta.Labels))
}

// ignored reports whether a parameter does not affect the answer. The library checks a timeout before.
func ignored(parameter string) bool { return parameter == "resourceVersion" || parameter == "timeout" }

// hasParameters reports whether a request for a package has parameters that may affect the answer.
func hasParameters(r *http.Request) bool {
	for key := range r.URL.Query() {
		if !ignored(key) {
			return true
		}
	}
	return false
}

// selectionOf returns the selection of a request for a list. known is false if the request has other parameters than
// selectors and those that do not affect the answer, or invalid ones.
func selectionOf(r *http.Request) (s selection, known bool) {
	s = newSelection(nil)
	for key, values := range r.URL.Query() {
		for _, value := range values {
			var err error
			switch {
			case ignored(key):
			case key == "limit" || key == "timeoutSeconds":
				_, err = strconv.ParseInt(value, 10, 64)
			case len(values) > 1:
				return s, false
			case key == "labelSelector":
				s.labels, err = labels.Parse(value)
			case key == "fieldSelector":
				s.fields, err = fields.ParseSelector(value)
			default:
				return s, false
			}
			if err != nil {
				return s, false
			}
		}
	}
	unknown := slices.ContainsFunc(s.fields.Requirements(), func(r fields.Requirement) bool { return r.Field != fieldName && r.Field != fieldNamespace })
	return s, !unknown
}
