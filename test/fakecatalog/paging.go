package fakecatalog

import (
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// paging divides lists of the extension API into pages.
type paging struct {
	mu sync.Mutex
	// size is the largest size of a page; zero for the requested size.
	size int
	// aborted is the number of further pages, other than first ones, that fail.
	aborted int
	served  int
}

// Paginate limits the size of pages.
func (p *paging) Paginate(size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.size = size
}

// Abort makes the next n pages other than first ones fail, as after a change of the content.
func (p *paging) Abort(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.aborted = n
}

// Pages returns the number of served pages.
func (p *paging) Pages() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.served
}

// request is the interface of requests for pages.
type request interface {
	GetPageSize() int32
	GetPageToken() string
}

// turn returns the requested page of all elements of the content with a digest.
func turn[T any](p *paging, digest string, all []T, r request) (found []T, next string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	begin := 0
	if r.GetPageToken() != "" {
		of, place, _ := strings.Cut(r.GetPageToken(), ":")
		if begin, err = strconv.Atoi(place); err != nil || begin > len(all) {
			return nil, "", status.Error(codes.InvalidArgument, "the page token is none of ours")
		}
		if of != digest || p.aborted > 0 {
			p.aborted = max(0, p.aborted-1)
			return nil, "", status.Error(codes.Aborted, "the content has been replaced")
		}
	}
	size := int(r.GetPageSize())
	if p.size > 0 {
		size = min(size, p.size)
	}
	end := min(len(all), begin+size)
	if end < len(all) {
		next = digest + ":" + strconv.Itoa(end)
	}
	p.served++
	return all[begin:end], next, nil
}
