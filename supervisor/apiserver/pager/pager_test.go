package pager_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apiserver/pager"
	"github.com/chandlery/chandlery/test/listpages"
)

// server is a reader that returns as many of its ConfigMaps as a request allows.
type server struct {
	client.Reader

	names []string
	// requests are the options of the requests.
	requests []client.ListOptions
	// errs are errors for the first requests; nil for none.
	errs  []error
	pages listpages.Recorder[corev1.ConfigMap]
}

func (s *server) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	s.requests = append(s.requests, o)
	if len(s.errs) > 0 {
		err := s.errs[0]
		s.errs = s.errs[1:]
		if err != nil {
			return err
		}
	}
	from, to := 0, len(s.names)
	if o.Continue != "" {
		from, _ = strconv.Atoi(o.Continue)
	}
	if o.Limit > 0 {
		to = min(to, from+int(o.Limit))
	}
	var next string
	if to < len(s.names) {
		next = strconv.Itoa(to)
	}
	if list, ok := into.(*metav1.PartialObjectMetadataList); ok {
		list.Items, list.Continue = make([]metav1.PartialObjectMetadata, to-from), next
		return nil
	}
	items := make([]corev1.ConfigMap, to-from)
	for i := range items {
		items[i].Name = s.names[from+i]
	}
	s.pages.Page(ctx, items)
	list := into.(*corev1.ConfigMapList)
	list.Items, list.Continue = items, next
	return nil
}

// list returns the names of each page, up to the page with the last name.
func list(ctx context.Context, reader client.Reader, last string, opts ...client.ListOption) (pages [][]string, err error) {
	err = pager.EachPage(ctx, reader, func() *corev1.ConfigMapList { return &corev1.ConfigMapList{} }, func(page *corev1.ConfigMapList) bool {
		var names []string
		for i := range page.Items {
			names = append(names, page.Items[i].Name)
		}
		pages = append(pages, names)
		return !slices.Contains(names, last)
	}, opts...)
	return pages, err
}

func TestEachPage(t *testing.T) {
	failed, expired := errors.New("not now"), apierrors.NewResourceExpired("too old")
	inconsistent := apierrors.NewResourceExpired("too old")
	inconsistent.ErrStatus.Continue = "5"
	for _, tt := range []struct {
		reason string
		names  []string
		last   string
		errs   []error
		want   [][]string
		err    error
	}{
		{reason: "no objects", want: [][]string{nil}},
		{reason: "one page", names: []string{"a", "b", "c", "d"}, want: [][]string{{"a", "b", "c", "d"}}},
		{reason: "two pages", names: []string{"a", "b", "c", "d", "e"}, want: [][]string{{"a", "b", "c", "d"}, {"e"}}},
		{reason: "the visitor needs no more", names: []string{"a", "b", "c", "d", "e"}, last: "b", want: [][]string{{"a", "b", "c", "d"}}},
		{reason: "a request fails", names: []string{"a", "b", "c", "d", "e"}, errs: []error{nil, failed}, want: [][]string{{"a", "b", "c", "d"}}, err: failed},
		{
			reason: "the list continues at the newest state", names: []string{"a", "b", "c", "d", "e", "f"}, errs: []error{nil, inconsistent},
			want: [][]string{{"a", "b", "c", "d"}, {"f"}},
		},
		{
			reason: "the server offers no other state", names: []string{"a", "b", "c", "d", "e"}, errs: []error{nil, expired},
			want: [][]string{{"a", "b", "c", "d"}}, err: expired,
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			s := &server{names: tt.names, errs: tt.errs}
			got, err := list(t.Context(), s, tt.last, client.InNamespace("shop"))
			if diff := cmp.Diff(tt.want, got); diff != "" || !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v; pages (-want +got):\n%s", err, tt.err, diff)
			}
			for _, o := range s.requests {
				if o.Namespace != "shop" || o.Limit != 4 {
					t.Errorf("request for %d objects of namespace %q", o.Limit, o.Namespace)
				}
			}
		})
	}
}

// TestOnePageOfTheProcess checks that one page is in memory, and that a list waits while another one uses a page.
func TestOnePageOfTheProcess(t *testing.T) {
	s := &server{names: slices.Repeat([]string{"a"}, 9)}
	s.pages.Again = func(ctx context.Context) error {
		_, err := list(ctx, s, "")
		return err
	}
	if pages, err := list(t.Context(), s, ""); err != nil || len(pages) != 3 {
		t.Errorf("%d pages, error %v", len(pages), err)
	}
	s.pages.Check(t, listpages.WholeObject)

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := pager.ReadPage(t.Context(), s, &corev1.ConfigMapList{}, func(*corev1.ConfigMapList) {
		before := len(s.requests)
		if _, err := list(cancelled, s, ""); !errors.Is(err, context.Canceled) || len(s.requests) > before {
			t.Errorf("a list beside a page that is in use: error %v, %d requests", err, len(s.requests)-before)
		}
	})
	if err != nil {
		t.Error(err)
	}
	s.errs = []error{errors.New("not now")}
	if _, err := list(t.Context(), s, ""); err == nil {
		t.Error("no error")
	}
	if _, err := list(t.Context(), s, ""); err != nil {
		t.Errorf("a list after one that failed: %v", err)
	}
}

func TestPagesOfMetadata(t *testing.T) {
	s := &server{names: slices.Repeat([]string{"a"}, 20)}
	next, err := pager.ReadPage(t.Context(), s, &metav1.PartialObjectMetadataList{}, func(page *metav1.PartialObjectMetadataList) {
		if len(page.Items) != 16 || len(page.Items)*listpages.Metadata > listpages.WholeObject*4 {
			t.Errorf("%d objects are read at once", len(page.Items))
		}
	})
	if err != nil || next != "16" {
		t.Errorf("token %q, error %v", next, err)
	}
}
