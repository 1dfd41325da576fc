package filelock

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

func TestTry(t *testing.T) {
	name := filepath.Join(t.TempDir(), "folder", "lock")

	first, err := Try(name)
	if err != nil {
		t.Fatalf("Try(...) of a free lock: %v", err)
	}

	_, err = Try(name)
	if !errors.Is(err, ErrHeld) {
		t.Errorf("Try(...) of a held lock: want %v, got %v", ErrHeld, err)
	}

	err = first.Release()
	if err != nil {
		t.Fatalf("Release(): %v", err)
	}

	second, err := Try(name)
	if err != nil {
		t.Fatalf("Try(...) of a released lock: %v", err)
	}

	err = second.Release()
	if err != nil {
		t.Errorf("Release(): %v", err)
	}
}

func TestAcquire(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")

	first, err := Acquire(t.Context(), name, func() { t.Error("waits for a free lock") })
	if err != nil {
		t.Fatalf("Acquire(...) of a free lock: %v", err)
	}

	second, err := Acquire(t.Context(), name, func() {
		err := first.Release()
		if err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatalf("Acquire(...) of a lock that is released meanwhile: %v", err)
	}

	errBoom := errors.New("boom")
	ctx, cancel := context.WithCancelCause(t.Context())

	_, err = Acquire(ctx, name, func() { cancel(errBoom) })
	if !errors.Is(err, errBoom) {
		t.Errorf("Acquire(...) with a cancelled context: want %v, got %v", errBoom, err)
	}

	err = second.Release()
	if err != nil {
		t.Errorf("Release(): %v", err)
	}
}
