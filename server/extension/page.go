package extension

import (
	"strconv"

	"github.com/chandlery/chandlery/bundles/index"
)

// page is a page of a listing under construction.
type page struct {
	index          *index.Index
	digest         string
	remainingSpace remainingSpace
	// token is the position at which the page begins.
	token pageToken
}

// openPage returns the empty page that a request asks for.
func (s *Service) openPage(r pageRequest, limits pageLimits) (*page, error) {
	size, err := limits.of(r.GetPageSize())
	if err != nil {
		return nil, err
	}
	x, err := s.index()
	if err != nil {
		return nil, err
	}
	// The answer would lack damaged elements.
	if err := x.CheckLists(); err != nil {
		return nil, s.statusError(x, err)
	}
	digest := x.Info().ContentDigest
	token, err := parsePosition(r, digest)
	if err != nil {
		return nil, err
	}
	return &page{index: x, digest: digest, remainingSpace: newRemainingSpace(size), token: token}, nil
}

// checkPackages returns an error for the first of the packages that the index lacks.
func (p *page) checkPackages(packages []string) error {
	for _, name := range packages {
		if _, err := p.index.Package(name); err != nil {
			return err
		}
	}
	return nil
}

// number returns the position at which the page begins, for listings whose positions are numbers.
func (p *page) number() int {
	n, err := strconv.ParseUint(p.token.after, 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}

// next returns the token of the page that begins after a position; empty for none.
func (p *page) next(after string) string {
	if after == "" {
		return ""
	}
	token := p.token
	token.after = after
	return token.String()
}
