package migration

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMissingPermissions(t *testing.T) {
	forbidden := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
	}
	broken := errors.New("broken")
	for _, tt := range []struct {
		reason string
		errs   []error
		passed error
		says   []string
	}{
		{"none is missing", []error{nil}, nil, nil},
		{"all missing ones are reported", []error{forbidden("lamps"), nil, forbidden("horns")}, nil, []string{"lamps is forbidden", "horns is forbidden", "administrator"}},
		{"another error", []error{broken}, broken, nil},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			var m missingPermissions
			var passed error
			for _, err := range tt.errs {
				passed = errors.Join(passed, m.collect(err))
			}
			if !errors.Is(passed, tt.passed) {
				t.Errorf("passed %v, want %v", passed, tt.passed)
			}
			var outer missingPermissions
			if err := outer.collect(m.err()); err != nil || len(outer.errs) != len(m.errs) {
				t.Errorf("gathered again: %v", outer.errs)
			}
			err := m.err()
			if (err != nil) != (len(tt.says) > 0) || err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("error %v", err)
			}
			for _, says := range tt.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%q lacks %q", err, says)
				}
			}
		})
	}
}
