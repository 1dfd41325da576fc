package catalogs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

// session reads from one replica which content the catalog serves. With the extension API, it watches
// the replica until it ends and receives every change at once. Without it, a session makes one
// request.
type session struct {
	reflector *reflector
	conn      replicas.Conn
	// epoch distinguishes connections to the same replica.
	epoch int
	// hasAnnounced is true once the replica has announced its content. watchEnded is true if the watch failed
	// afterwards.
	hasAnnounced, watchEnded bool
	// empty is true while the replica has no content.
	empty bool
}

// server identifies a server process as far as possible. After a reconnect, another process may
// answer.
type server struct {
	replica replicas.Endpoint
	epoch   int
}

func (s *session) server() server {
	replica := s.conn.Replica
	// Readiness does not identify a process.
	replica.Ready, replica.Terminating = false, false
	return server{replica: replica, epoch: s.epoch}
}

// run reads from the replica. A nil error means that a request succeeded; a watch always ends with an
// error.
func (s *session) run(ctx context.Context) error { return storable(s.watchOrQuery(ctx)) }

func (s *session) watchOrQuery(ctx context.Context) error {
	if !s.reflector.tracker.lacksExtension(s.server()) {
		err := s.watch(ctx)
		if status.Code(err) != codes.Unimplemented {
			return err
		}
		s.reflector.tracker.setLacksExtension(s.server())
		s.hasAnnounced, s.watchEnded = false, false
	}
	return s.query(ctx)
}

// watch watches a replica with the extension API. It also probes the replica periodically, because
// a hanging replica looks like one without changes.
func (s *session) watch(ctx context.Context) error {
	client := registryv1.NewRegistryServiceClient(s.conn)
	messages, stop := listen(ctx, client)
	defer stop()
	timer := time.NewTimer(s.reflector.store.settings.Probe)
	defer timer.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return fmt.Errorf("failed to list bundles: watching the content: %w", ctx.Err())
		case m := <-messages:
			if m.err != nil {
				s.watchEnded = s.hasAnnounced
				return fmt.Errorf("failed to list bundles: watching the content: %w", m.err)
			}
			s.hasAnnounced = true
			err = s.announced(ctx, m.answer)
		case <-s.reflector.checks:
			err = s.check(ctx, client)
		case <-timer.C:
			err = s.check(ctx, client)
		}
		if err != nil {
			return err
		}
		timer.Reset(s.reflector.store.settings.Refresh)
	}
}

// message is one result of a watch stream.
type message struct {
	answer *registryv1.WatchResponse
	err    error
}

// listen starts to receive the announcements of a replica. It runs until stop is called or the
// stream fails.
func listen(ctx context.Context, client registryv1.RegistryServiceClient) (messages <-chan message, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	received, ended := make(chan message), make(chan struct{})
	go func() {
		defer close(ended)
		stream, err := client.Watch(ctx, &registryv1.WatchRequest{})
		for {
			m := message{err: err}
			if err == nil {
				m.answer, m.err = stream.Recv()
			}
			select {
			case received <- m:
			case <-ctx.Done():
				// The receiver has stopped.
				return
			}
			if m.err != nil {
				return
			}
		}
	}()
	return received, func() {
		cancel()
		<-ended
	}
}

// announced handles an announcement of the watch stream.
func (s *session) announced(ctx context.Context, answer *registryv1.WatchResponse) error {
	s.empty = answer.GetContent().GetDigest() == ""
	if s.empty {
		s.reflector.record(ctx, s.server(), "", nil, storable(emptyError(answer.GetFailure())))
		return nil
	}
	return s.handleDigest(ctx, answer.GetContent().GetDigest())
}

// emptyError returns an error for a server without content, with its first problem.
func emptyError(failure *registryv1.LoadFailure) error {
	if problems := failure.GetProblems(); len(problems) > 0 {
		p := problems[0]
		text := p.GetMessage()
		if p.GetRemedy() != "" {
			text += "; " + p.GetRemedy()
		}
		return fmt.Errorf("failed to list bundles: the server has no content to serve because of %d problems, the first one: %s", failure.GetTotalProblems(), bundles.Clip(text, maxProblem))
	}
	return errors.New("failed to list bundles: the server has no content to serve yet")
}

const (
	// maxProblem limits a problem text from a server, and maxFailure limits the text of any error,
	// in bytes.
	maxProblem = 1 << 10
	maxFailure = 4 << 10
)

// storableError is an error with a text that the API server can store. Servers can send any bytes. The
// API server stores invalid text differently from what it receives, so writes of such text would
// never end.
type storableError struct {
	text string
	err  error
}

func (f *storableError) Error() string { return f.text }

func (f *storableError) Unwrap() error { return f.err }

// storable returns err with a text that can be stored.
func storable(err error) error {
	if err == nil {
		return nil
	}
	text := bundles.Clip(bundles.OneLine(err.Error()), maxFailure)
	if text == err.Error() {
		return err
	}
	return &storableError{text: text, err: err}
}

// check requests the current digest from a replica under watch.
func (s *session) check(ctx context.Context, client registryv1.RegistryServiceClient) error {
	if !s.hasAnnounced {
		return status.Error(codes.DeadlineExceeded, "failed to list bundles: the server does not say which content it serves")
	}
	asking, cancel := context.WithTimeout(ctx, s.reflector.store.settings.Probe)
	defer cancel()
	info, err := client.GetInfo(asking, &registryv1.GetInfoRequest{})
	switch {
	case err != nil && s.empty && status.Code(err) == codes.Unavailable:
		return nil // an empty server answers Unavailable
	case err != nil:
		return fmt.Errorf("failed to list bundles: asking for the content: %w", err)
	default:
		return s.handleDigest(ctx, info.GetContent().GetDigest())
	}
}

// handleDigest handles an announced digest and reads unknown content.
func (s *session) handleDigest(ctx context.Context, announced string) error {
	client := registryv1.NewRegistryServiceClient(s.conn)
	return s.setContent(ctx, announced, func(ctx context.Context) (*Snapshot, error) {
		return fetchPages(ctx, client, s.reflector.store.settings.Limit)
	})
}

// query reads the digest from a replica without the extension API. The request also serves as a
// probe.
func (s *session) query(ctx context.Context) error {
	src, client := s.reflector, api.NewRegistryClient(s.conn)
	announced, err := announcedDigest(ctx, client, src.store.settings.Probe)
	if err != nil && (src.tracker.current().Snapshot != nil || status.Code(err) == codes.DeadlineExceeded) {
		return err
	}
	return s.setContent(ctx, announced, func(ctx context.Context) (*Snapshot, error) { return fetchList(ctx, client, src.store.settings.Limit) })
}

// setContent makes the replica's content the content of the catalog. It reads the content if it is, or
// may be, new.
func (s *session) setContent(ctx context.Context, announced string, read func(ctx context.Context) (*Snapshot, error)) error {
	src := s.reflector
	next, action := src.tracker.decide(s.server(), announced)
	var err error
	switch action {
	case readContent:
		next, err = src.fetch(ctx, announced, read)
	case reject:
		return nil
	case useCached, ignore:
	}
	if err != nil && !errors.Is(err, errUnusable) {
		return err
	}
	src.record(ctx, s.server(), announced, next, storable(err))
	return nil
}
