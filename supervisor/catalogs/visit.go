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

// visit reads from one replica which content the catalog serves. With the extension API, it watches
// the replica until it ends and receives every change at once. Without it, a visit makes one
// request.
type visit struct {
	source *source
	conn   replicas.Conn
	// joined distinguishes connections to the same replica.
	joined int
	// announcing is true once the replica has announced its content. broke is true if the watch failed
	// afterwards.
	announcing, broke bool
	// empty is true while the replica has no content.
	empty bool
}

// server identifies a server process as far as possible. After a reconnect, another process may
// answer.
type server struct {
	replica replicas.Endpoint
	joined  int
}

func (v *visit) server() server {
	replica := v.conn.Replica
	// Readiness does not identify a process.
	replica.Ready, replica.Terminating = false, false
	return server{replica: replica, joined: v.joined}
}

// run visits the replica. A nil error means that a request succeeded; a watch always ends with an
// error.
func (v *visit) run(ctx context.Context) error { return presentable(v.watchOrQuery(ctx)) }

func (v *visit) watchOrQuery(ctx context.Context) error {
	if !v.source.tracker.isPlain(v.server()) {
		err := v.watch(ctx)
		if status.Code(err) != codes.Unimplemented {
			return err
		}
		v.source.tracker.setPlain(v.server())
		v.announcing, v.broke = false, false
	}
	return v.query(ctx)
}

// watch watches a replica with the extension API. It also probes the replica periodically, because
// a hanging replica looks like one without changes.
func (v *visit) watch(ctx context.Context) error {
	client := registryv1.NewRegistryServiceClient(v.conn)
	messages, stop := listen(ctx, client)
	defer stop()
	timer := time.NewTimer(v.source.store.settings.probe)
	defer timer.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return fmt.Errorf("failed to list bundles: watching the content: %w", ctx.Err())
		case m := <-messages:
			if m.err != nil {
				v.broke = v.announcing
				return fmt.Errorf("failed to list bundles: watching the content: %w", m.err)
			}
			v.announcing = true
			err = v.announced(ctx, m.answer)
		case <-v.source.checks:
			err = v.check(ctx, client)
		case <-timer.C:
			err = v.check(ctx, client)
		}
		if err != nil {
			return err
		}
		timer.Reset(v.source.store.settings.refresh)
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
func (v *visit) announced(ctx context.Context, answer *registryv1.WatchResponse) error {
	v.empty = answer.GetContent().GetDigest() == ""
	if v.empty {
		v.source.record(ctx, v.server(), "", nil, presentable(emptyError(answer.GetFailure())))
		return nil
	}
	return v.serves(ctx, answer.GetContent().GetDigest())
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

// failure is an error with a text that the API server can store. Servers can send any bytes. The
// API server stores invalid text differently from what it receives, so writes of such text would
// never end.
type failure struct {
	text string
	err  error
}

func (f *failure) Error() string { return f.text }

func (f *failure) Unwrap() error { return f.err }

// presentable returns err with a text that can be stored.
func presentable(err error) error {
	if err == nil {
		return nil
	}
	text := bundles.Clip(bundles.OneLine(err.Error()), maxFailure)
	if text == err.Error() {
		return err
	}
	return &failure{text: text, err: err}
}

// check requests the current digest from a replica under watch.
func (v *visit) check(ctx context.Context, client registryv1.RegistryServiceClient) error {
	if !v.announcing {
		return status.Error(codes.DeadlineExceeded, "failed to list bundles: the server does not say which content it serves")
	}
	asking, cancel := context.WithTimeout(ctx, v.source.store.settings.probe)
	defer cancel()
	info, err := client.GetInfo(asking, &registryv1.GetInfoRequest{})
	switch {
	case err != nil && v.empty && status.Code(err) == codes.Unavailable:
		return nil // an empty server answers Unavailable
	case err != nil:
		return fmt.Errorf("failed to list bundles: asking for the content: %w", err)
	default:
		return v.serves(ctx, info.GetContent().GetDigest())
	}
}

// serves handles an announced digest and reads unknown content.
func (v *visit) serves(ctx context.Context, announced string) error {
	client := registryv1.NewRegistryServiceClient(v.conn)
	return v.take(ctx, announced, func(ctx context.Context) (*Snapshot, error) {
		return fetchPages(ctx, client, v.source.store.settings.limit)
	})
}

// query reads the digest from a replica without the extension API. The request also serves as a
// probe.
func (v *visit) query(ctx context.Context) error {
	s, client := v.source, api.NewRegistryClient(v.conn)
	announced, err := announcedDigest(ctx, client, s.store.settings.probe)
	if err != nil && (s.tracker.current().Snapshot != nil || status.Code(err) == codes.DeadlineExceeded) {
		return err
	}
	return v.take(ctx, announced, func(ctx context.Context) (*Snapshot, error) { return fetchList(ctx, client, s.store.settings.limit) })
}

// take makes the replica's content the content of the catalog. It reads the content if it is, or
// may be, new.
func (v *visit) take(ctx context.Context, announced string, read func(ctx context.Context) (*Snapshot, error)) error {
	s := v.source
	next, action := s.tracker.decide(v.server(), announced)
	var err error
	switch action {
	case readContent:
		next, err = s.fetch(ctx, announced, read)
	case reject:
		return nil
	case useHeld, ignore:
	}
	if err != nil && !errors.Is(err, errUnusable) {
		return err
	}
	s.record(ctx, v.server(), announced, next, presentable(err))
	return nil
}
