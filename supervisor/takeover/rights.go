package takeover

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// rights gathers which are missing, so that whoever lacks several hears of all at once.
type rights struct{ missing []error }

// pass gives an error back, unless it is that a right is missing: that is kept for later.
func (r *rights) pass(err error) error {
	var several *missingError
	switch {
	case errors.As(err, &several):
		r.missing = append(r.missing, several.rights...)
		return nil
	case apierrors.IsForbidden(err):
		r.missing = append(r.missing, err)
		return nil
	default:
		return err
	}
}

// err says which rights are missing; nil for none.
func (r *rights) err() error {
	if len(r.missing) == 0 {
		return nil
	}
	return &missingError{rights: r.missing}
}

// missingError says which rights are missing.
type missingError struct{ rights []error }

// Error names each.
func (e *missingError) Error() string {
	texts := make([]string, 0, len(e.rights))
	for _, right := range e.rights {
		texts = append(texts, right.Error())
	}
	return "rights are missing; run this with those of an administrator of the cluster: " + strings.Join(texts, "; ")
}

// Unwrap gives each, so that it is known as one of missing rights.
func (e *missingError) Unwrap() []error { return e.rights }
