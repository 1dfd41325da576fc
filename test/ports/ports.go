// Package ports reserves TCP ports of the loopback interface for programs that need their port
// before they start. No two programs get the same port.
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

// Ports are below the range from which the kernel assigns ports. So no outgoing connection and no
// listener on port 0 can take one before its program starts.
const (
	lowest  = 20000
	highest = 32000
	tries   = 200
)

// Port is a free port of the loopback interface. Other processes of this user that use this package
// do not get it.
type Port struct {
	// Number is the port.
	Number int

	lock *filelock.Lock
}

// Reserve finds a port without a listener and reserves it until it is released or this process ends.
func Reserve(ctx context.Context) (*Port, error) {
	root, err := buildcache.Root()
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}

	return reserve(ctx, filepath.Join(root, "ports"))
}

// reserve stores its locks as files in dir.
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

// probe returns an error if the address cannot be listened on.
func probe(ctx context.Context, address string) error {
	var config net.ListenConfig

	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}

	return listener.Close()
}

// Address returns the address for listening and dialing.
func (p *Port) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Number)) }

// Release releases the port. Releasing it again, or no port at all, does nothing.
func (p *Port) Release() error {
	if p == nil || p.lock == nil {
		return nil
	}

	lock := p.lock
	p.lock = nil

	return lock.Release()
}

// Address reserves a port until the test ends and returns its address.
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
