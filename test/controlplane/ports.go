package controlplane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"

	"github.com/chandlery/chandlery/test/filelock"
)

// Ports are taken from below the range that the kernel hands out by itself, so that no
// outgoing connection can take one between our look at it and the component's start.
const (
	lowestPort  = 20000
	highestPort = 32000
	portTries   = 200
)

// port is a free port of the loopback interface that other control planes leave alone.
type port struct {
	number int
	lock   *filelock.Lock
}

// reservePort finds a port that nobody listens on and keeps it from every other control
// plane of this user until it is released. Locks are files in dir.
func reservePort(ctx context.Context, dir string) (port, error) {
	var last error

	for range portTries {
		number := lowestPort + rand.IntN(highestPort-lowestPort)

		held, err := filelock.Try(filepath.Join(dir, strconv.Itoa(number)))
		if errors.Is(err, filelock.ErrHeld) {
			continue
		}

		if err != nil {
			return port{}, fmt.Errorf("reserve a port: %w", err)
		}

		last = probe(ctx, number)
		if last == nil {
			return port{number: number, lock: held}, nil
		}

		err = held.Release()
		if err != nil {
			return port{}, err
		}
	}

	return port{}, fmt.Errorf("no free port on 127.0.0.1 in %d tries: %w", portTries, last)
}

func probe(ctx context.Context, number int) error {
	var config net.ListenConfig

	listener, err := config.Listen(ctx, "tcp", (&port{number: number}).address())
	if err != nil {
		return err
	}

	return listener.Close()
}

// address is where to listen and dial.
func (p *port) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

// release lets others have the port.
func (p *port) release() error {
	if p.lock == nil {
		return nil
	}

	lock := p.lock
	p.lock = nil

	return lock.Release()
}
