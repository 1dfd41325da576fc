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
	"github.com/chandlery/chandlery/supervisor/replicas"
)

// visit learns from one replica what the catalog serves. With the extension API it
// lasts as long as the replica does, and every change is heard of at once. Others
// are asked once a visit.
type visit struct {
	source *source
	conn   replicas.Conn
	// joined tells connections to the same replica apart.
	joined int
	// heard says that the replica has said what it serves, and broke that it ceased
	// to be heard afterwards.
	heard, broke bool
	// empty says that it serves nothing yet.
	empty bool
}

// server is one process that serves a catalog, as far as it can be told: one at
// another end of a new connection may be another one.
type server struct {
	replica replicas.Endpoint
	joined  int
}

func (v *visit) server() server {
	replica := v.conn.Replica
	// Whether it is ready makes it no other one.
	replica.Ready, replica.Terminating = false, false
	return server{replica: replica, joined: v.joined}
}

// run visits the replica. Without an error it was asked; listening never ends
// without one.
func (v *visit) run(ctx context.Context) error { return presentable(v.listenOrAsk(ctx)) }

func (v *visit) listenOrAsk(ctx context.Context) error {
	if !v.source.plain(v.server()) {
		err := v.watch(ctx)
		if status.Code(err) != codes.Unimplemented {
			return err
		}
		v.source.setPlain(v.server())
		v.heard, v.broke = false, false
	}
	return v.ask(ctx)
}

// watch listens to a replica with the extension API. Now and then it is asked, too:
// one that hangs would otherwise pass for one at which nothing changes.
func (v *visit) watch(ctx context.Context) error {
	client := registryv1.NewRegistryServiceClient(v.conn)
	messages, stop := listen(ctx, client)
	defer stop()
	timer := time.NewTimer(v.source.store.probe)
	defer timer.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return fmt.Errorf("failed to list bundles: watching the content: %w", ctx.Err())
		case m := <-messages:
			if m.err != nil {
				v.broke = v.heard
				return fmt.Errorf("failed to list bundles: watching the content: %w", m.err)
			}
			v.heard = true
			err = v.told(ctx, m.answer)
		case <-v.source.nudges:
			err = v.check(ctx, client)
		case <-timer.C:
			err = v.check(ctx, client)
		}
		if err != nil {
			return err
		}
		timer.Reset(v.source.store.refresh)
	}
}

// message is what a stream of a replica gave.
type message struct {
	answer *registryv1.WatchResponse
	err    error
}

// listen begins to receive what a replica says of its content. It goes on until
// stop is called or there was an error.
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
				// Nobody waits for it any more, but for the error that ends a call.
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

// told takes what a replica says by itself.
func (v *visit) told(ctx context.Context, answer *registryv1.WatchResponse) error {
	v.empty = answer.GetContent().GetDigest() == ""
	if v.empty {
		v.source.learn(ctx, v.server(), "", nil, presentable(emptyError(answer.GetFailure())))
		return nil
	}
	return v.serves(ctx, answer.GetContent().GetDigest())
}

// emptyError says that a server has nothing to serve, and why.
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
	// maxProblem bounds what is repeated of what a server says is wrong with its
	// content, and maxFailure the text of any error, in bytes.
	maxProblem = 1 << 10
	maxFailure = 4 << 10
)

// failure is an error whose text can be shown and kept: much of it is in the words
// of a server, which may send anything. An API server keeps other text than it was
// sent where that is not valid, and would be sent it again for ever.
type failure struct {
	text string
	err  error
}

func (f *failure) Error() string { return f.text }

func (f *failure) Unwrap() error { return f.err }

// presentable gives an error such a text.
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

// check asks a replica that is listened to for what it serves.
func (v *visit) check(ctx context.Context, client registryv1.RegistryServiceClient) error {
	if !v.heard {
		return status.Error(codes.DeadlineExceeded, "failed to list bundles: the server does not say which content it serves")
	}
	asking, cancel := context.WithTimeout(ctx, v.source.store.probe)
	defer cancel()
	info, err := client.GetInfo(asking, &registryv1.GetInfoRequest{})
	switch {
	case err != nil && v.empty && status.Code(err) == codes.Unavailable:
		return nil // as was to be expected
	case err != nil:
		return fmt.Errorf("failed to list bundles: asking for the content: %w", err)
	default:
		return v.serves(ctx, info.GetContent().GetDigest())
	}
}

// serves takes a server's word for what it serves: what is not known is read.
func (v *visit) serves(ctx context.Context, announced string) error {
	client := registryv1.NewRegistryServiceClient(v.conn)
	return v.take(ctx, announced, func(ctx context.Context) (*Snapshot, error) {
		return fetchPages(ctx, client, v.source.store.limit)
	})
}

// ask asks a replica without the extension API what it serves, which shows too
// that it answers.
func (v *visit) ask(ctx context.Context) error {
	s, client := v.source, api.NewRegistryClient(v.conn)
	announced, err := announcedDigest(ctx, client, s.store.probe)
	if err != nil && (s.current().Snapshot != nil || status.Code(err) == codes.DeadlineExceeded) {
		return err
	}
	return v.take(ctx, announced, func(ctx context.Context) (*Snapshot, error) { return fetchList(ctx, client, s.store.limit) })
}

// take makes what the replica serves the content of the catalog, and reads it when
// that is something else than what is known, or may be.
func (v *visit) take(ctx context.Context, announced string, read func(ctx context.Context) (*Snapshot, error)) error {
	s := v.source
	next, verdict := s.weigh(v.server(), announced)
	var err error
	switch verdict {
	case toRead:
		next, err = s.fetch(ctx, announced, read)
	case toRefuse:
		return nil
	case toTake, toLeave:
	}
	if err != nil && !errors.Is(err, errUnusable) {
		return err
	}
	s.learn(ctx, v.server(), announced, next, presentable(err))
	return nil
}
