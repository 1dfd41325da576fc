package takeover

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// rights collects missing permissions, so that one error reports all of them.
type rights struct{ missing []error }

// pass returns an error, unless it is about a missing permission, which it collects.
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

// err returns an error about the missing permissions; nil for none.
func (r *rights) err() error {
	if len(r.missing) == 0 {
		return nil
	}
	return &missingError{rights: r.missing}
}

// missingError reports missing permissions.
type missingError struct{ rights []error }

// Error returns a message with each of them.
func (e *missingError) Error() string {
	texts := make([]string, 0, len(e.rights))
	for _, right := range e.rights {
		texts = append(texts, right.Error())
	}
	return "rights are missing; run this with those of an administrator of the cluster: " + strings.Join(texts, "; ")
}

// Unwrap returns each error, so that callers recognize missing permissions.
func (e *missingError) Unwrap() []error { return e.rights }
