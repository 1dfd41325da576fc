package ports

import (
	"net"
	"testing"
)

func TestReserveHandsOutEachPortOnce(t *testing.T) {
	dir := t.TempDir()
	seen := map[int]bool{}

	for range 50 {
		p, err := reserve(t.Context(), dir)
		if err != nil {
			t.Fatalf("reserve(...): %v", err)
		}

		t.Cleanup(func() {
			if err := p.Release(); err != nil {
				t.Error(err)
			}
		})

		if seen[p.Number] {
			t.Errorf("port %d is reserved twice", p.Number)
		}

		seen[p.Number] = true
	}
}

func TestReserveNumber(t *testing.T) {
	dir := t.TempDir()

	free, err := reserve(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := reserveNumber(t.Context(), dir, free.Number); err == nil {
		t.Errorf("port %d was reserved by two", free.Number)
	}

	if err := free.Release(); err != nil {
		t.Fatal(err)
	}

	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", free.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()

	if _, err := reserveNumber(t.Context(), dir, free.Number); err == nil {
		t.Errorf("port %d was reserved although somebody listens there", free.Number)
	}
}
