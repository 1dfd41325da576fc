package informer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// pageSize is the number of objects that an informer reads at once.
const pageSize = 64

// reading is locked while a page is read and reduced, so that the process holds one page at a time.
var reading sync.Mutex

// lastPage is the time of the last read of a page, in nanoseconds since 1970; zero for never.
var lastPage atomic.Int64

// LastPage returns the time at which an informer of this process last read a page of a list; the zero time for
// never. Lists of large objects take long. They are not stuck while this time advances.
func LastPage() time.Time {
	at := lastPage.Load()
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at)
}

// maxRestarts is how often a list is started again because the API server no longer has its state.
const maxRestarts = 3

// New returns an informer that lists in pages and transforms each page before it reads the next. API servers
// that stream lists are not asked for pages: client-go transforms their objects one by one.
func New(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	paged := &pagedLister{from: toolscache.ToListerWatcherWithContext(from)}
	listed := &toolscache.ListWatch{
		ListWithContextFunc: paged.list,
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return paged.from.WatchWithContext(ctx, o)
		},
	}
	return &pagedInformer{SharedIndexInformer: toolscache.NewSharedIndexInformer(listed, example, resync, indexers), lister: paged}
}

// pagedInformer passes its transform to its lister.
type pagedInformer struct {
	toolscache.SharedIndexInformer

	lister *pagedLister
}

// SetTransform sets the function that is applied to each object before it is kept.
func (i *pagedInformer) SetTransform(transform toolscache.TransformFunc) error {
	i.lister.transform.Store(&transform)
	return i.SharedIndexInformer.SetTransform(transform) //nolint:wrapcheck // the informer's own
}

// pagedLister lists in pages.
type pagedLister struct {
	from      toolscache.ListerWatcherWithContext
	transform atomic.Pointer[toolscache.TransformFunc]
}

// list reads all pages of the newest state. From its cache an API server would send all objects at once,
// whatever limit is requested.
func (l *pagedLister) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	for restarts := 0; ; restarts++ {
		list, err := l.pages(ctx, o)
		if err == nil || !apierrors.IsResourceExpired(err) || restarts == maxRestarts {
			return list, err
		}
	}
}

func (l *pagedLister) pages(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	o.Limit, o.Continue, o.ResourceVersion, o.ResourceVersionMatch = pageSize, "", "", ""
	var items []runtime.Object
	for {
		page, added, err := l.page(ctx, o)
		if err != nil {
			return nil, err
		}
		items = append(items, added...)
		read, err := apimeta.ListAccessor(page)
		if err != nil {
			return nil, fmt.Errorf("reading a list of %T: %w", page, err)
		}
		if o.Continue = read.GetContinue(); o.Continue != "" {
			continue
		}
		if err := apimeta.SetList(page, items); err != nil {
			return nil, fmt.Errorf("joining the pages of a list of %T: %w", page, err)
		}
		return page, nil
	}
}

// page reads a page and returns it with its objects, reduced. The objects are copies, so that none keeps the
// page in memory.
func (l *pagedLister) page(ctx context.Context, o metav1.ListOptions) (page runtime.Object, items []runtime.Object, err error) {
	reading.Lock()
	defer reading.Unlock()
	page, err = l.from.ListWithContext(reduceLists(ctx), o)
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // reflectors look at the API's own error
	}
	lastPage.Store(time.Now().UnixNano())
	items, err = apimeta.ExtractListWithAlloc(page)
	if err != nil {
		return nil, nil, fmt.Errorf("reading a list of %T: %w", page, err)
	}
	transform := l.transform.Load()
	if transform == nil || *transform == nil {
		return page, items, nil
	}
	for i := range items {
		left, err := (*transform)(items[i])
		if err != nil {
			return nil, nil, fmt.Errorf("reducing an object of %T: %w", page, err)
		}
		items[i], _ = left.(runtime.Object)
	}
	return page, items, nil
}
