package migration

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// missingPermissions collects errors about missing permissions, so that one error reports all of them.
type missingPermissions struct{ errs []error }

// collect keeps an error about a missing permission and returns nil. It returns any other error.
func (m *missingPermissions) collect(err error) error {
	var several *missingError
	switch {
	case errors.As(err, &several):
		m.errs = append(m.errs, several.errs...)
		return nil
	case apierrors.IsForbidden(err):
		m.errs = append(m.errs, err)
		return nil
	default:
		return err
	}
}

// err returns an error about the missing permissions; nil for none.
func (m *missingPermissions) err() error {
	if len(m.errs) == 0 {
		return nil
	}
	return &missingError{errs: m.errs}
}

// missingError reports missing permissions.
type missingError struct{ errs []error }

// Error returns a message with each of them.
func (e *missingError) Error() string {
	texts := make([]string, 0, len(e.errs))
	for _, err := range e.errs {
		texts = append(texts, err.Error())
	}
	return "permissions are missing; run this command as a cluster administrator: " + strings.Join(texts, "; ")
}

// Unwrap returns each error, so that callers recognize missing permissions.
func (e *missingError) Unwrap() []error { return e.errs }
