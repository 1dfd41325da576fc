// Package ports hands out TCP ports of the loopback interface to programs that are told
// where to listen before they run, so that no two of them are told the same.
package ports

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/filelock"
)

// Ports are taken from below the range that the kernel hands out by itself, so that no
// outgoing connection and no listener on port 0 can take one between our look at it and
// the start of the program that it is for.
const (
	lowest  = 20000
	highest = 32000
	tries   = 200
)

// Port is a free port of the loopback interface that every other process of this user
// that asks here leaves alone.
type Port struct {
	// Number is the port.
	Number int

	lock *filelock.Lock
}

// Reserve finds a port that nobody listens on and keeps it until it is released or this
// process ends.
func Reserve(ctx context.Context) (*Port, error) {
	root, err := buildcache.Root()
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}

	return reserve(ctx, filepath.Join(root, "ports"))
}

// reserve keeps its locks as files in dir.
func reserve(ctx context.Context, dir string) (*Port, error) {
	var last error

	for range tries {
		number := lowest + rand.IntN(highest-lowest)

		port, err := reserveNumber(ctx, dir, number)
		if err == nil {
			return port, nil
		}

		last = err
	}

	return nil, fmt.Errorf("no free port on 127.0.0.1 in %d tries: %w", tries, last)
}

func reserveNumber(ctx context.Context, dir string, number int) (*Port, error) {
	held, err := filelock.Try(filepath.Join(dir, strconv.Itoa(number)))
	if err != nil {
		return nil, fmt.Errorf("reserve port %d: %w", number, err)
	}

	port := &Port{Number: number, lock: held}

	err = probe(ctx, port.Address())
	if err != nil {
		return nil, errors.Join(err, held.Release())
	}

	return port, nil
}

// probe tells whether one can listen there.
func probe(ctx context.Context, address string) error {
	var config net.ListenConfig

	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}

	return listener.Close()
}

// Address is where to listen and dial.
func (p *Port) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Number)) }

// Release lets others have the port. Releasing it again, or no port at all, does nothing.
func (p *Port) Release() error {
	if p == nil || p.lock == nil {
		return nil
	}

	lock := p.lock
	p.lock = nil

	return lock.Release()
}

// Address reserves a port until the test ends and returns where to listen and dial.
func Address(tb testing.TB) string {
	tb.Helper()

	port, err := Reserve(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() {
		err := port.Release()
		if err != nil {
			tb.Error(err)
		}
	})

	return port.Address()
}
