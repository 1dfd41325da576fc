package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
)

// launch describes how to start a server.
type launch struct {
	name string
	// path is the program; args returns its arguments.
	path string
	args func(grpcPort, observerPort int) []string
	// before are words before the program, to start it by another program.
	before []string
	// floor is set for the floor, which has no health service. It serves as soon as it accepts connections.
	floor bool
	// patience bounds the start.
	patience time.Duration
}

// patience is enough for the slowest start on a slow machine.
const patience = 10 * time.Minute

// registryLaunch returns how to serve a directory or an index file with the registry.
func (b *bench) registryLaunch(content string, more ...string) launch {
	return launch{
		name: "registry", path: b.programs.registry, patience: patience,
		args: func(grpcPort, observerPort int) []string {
			return append([]string{
				"serve", content, "--host=127.0.0.1", "--port=" + strconv.Itoa(grpcPort),
				"--metrics-address=127.0.0.1:" + strconv.Itoa(observerPort), "--termination-log=",
			}, more...)
		},
	}
}

// opmLaunch returns how to serve a directory with opm.
func (b *bench) opmLaunch(dir string, more ...string) launch {
	return launch{
		name: "opm", path: b.programs.opm, patience: patience,
		args: func(grpcPort, observerPort int) []string {
			return append([]string{
				"serve", dir, "--port=" + strconv.Itoa(grpcPort),
				"--pprof-addr=127.0.0.1:" + strconv.Itoa(observerPort), "--termination-log=",
			}, more...)
		},
	}
}

// floorLaunch returns how to serve a recording with the floor.
func (b *bench) floorLaunch(recording string) launch {
	return launch{
		name: "floor", path: b.programs.floor, patience: patience, floor: true,
		args: func(grpcPort, observerPort int) []string {
			return []string{
				"--address=127.0.0.1:" + strconv.Itoa(grpcPort), "--recording=" + recording,
				"--metrics-address=127.0.0.1:" + strconv.Itoa(observerPort),
			}
		},
	}
}

// server is a process that serves.
type server struct {
	*process.Process

	launch   launch
	address  string
	observer string
	ports    []*ports.Port
	// wall is the time from the start of the process until it served. cpu is the processor time
	// until then. Both are in seconds.
	wall, cpu float64
}

// start runs a server and waits until it serves.
func (b *bench) start(ctx context.Context, l launch) (*server, error) {
	s, began, err := b.spawn(ctx, l)
	if err != nil {
		return nil, err
	}
	if err := s.awaitServing(ctx, began); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// spawn starts a server and does not wait for it.
func (b *bench) spawn(ctx context.Context, l launch) (*server, time.Time, error) {
	s := &server{launch: l}
	for range 2 {
		port, err := ports.Reserve(ctx)
		if err != nil {
			return nil, time.Time{}, errors.Join(err, s.releasePorts())
		}
		s.ports = append(s.ports, port)
	}
	s.address, s.observer = s.ports[0].Address(), s.ports[1].Address()
	words := append(append([]string{}, l.before...), l.path)
	words = append(words, l.args(s.ports[0].Number, s.ports[1].Number)...)
	log, err := os.CreateTemp(b.dir, l.name+"-*.log")
	if err != nil {
		return nil, time.Time{}, errors.Join(fmt.Errorf("making a log: %w", err), s.releasePorts())
	}
	began := time.Now()
	p, err := process.Start(ctx, process.Spec{Name: l.name, Path: words[0], Args: words[1:], Log: log.Name(), Dir: b.dir})
	if err = errors.Join(err, log.Close()); err != nil {
		return nil, time.Time{}, errors.Join(err, s.releasePorts())
	}
	s.Process = p
	return s, began, nil
}

// pollInterval is the precision of the time of readiness.
const pollInterval = 2 * time.Millisecond

// awaitServing checks the server's health until it serves.
func (s *server) awaitServing(ctx context.Context, began time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, s.launch.patience)
	defer cancel()
	conn, err := dial(s.address)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing hangs on it
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := s.serving(ctx, conn)
		if err == nil {
			s.wall = time.Since(began).Seconds()
			s.cpu, err = cpuTime(s.PID())
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve: %w; the end of its log:\n%s", s.Name(), err, process.Tail(s.Log()))
		case <-s.Done():
			return s.Unexpected()
		case <-ticker.C:
		}
	}
}

var errNotServing = errors.New("the health service does not say SERVING")

func (s *server) serving(ctx context.Context, conn *grpc.ClientConn) error {
	if s.launch.floor {
		return connected(ctx, conn)
	}
	answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return err
	}
	if answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return errNotServing
	}
	return nil
}

// stop stops a server, and kills it if necessary.
func (s *server) stop() error {
	err := s.Stop(20 * time.Second)
	if errors.Is(err, process.ErrKilled) {
		err = nil // opm waits forever for a client that has stopped reading
	}
	return errors.Join(err, s.releasePorts())
}

func (s *server) releasePorts() error {
	var all error
	for _, port := range s.ports {
		all = errors.Join(all, port.Release())
	}
	s.ports = nil
	return all
}

// dial returns a connection that retries at once while the server does not listen yet.
func dial(address string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: pollInterval, Multiplier: 1, MaxDelay: pollInterval},
			MinConnectTimeout: time.Second,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)),
	)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	return conn, nil
}
