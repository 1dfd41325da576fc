package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/server/registry"
)

// sizeInterval is the time between two checks of the size of the index file. The system reports
// most changes. It does not if it has run out of watches, or if another machine changes a file on a
// network file system.
const sizeInterval = time.Second

// errWritten is the error of an index file that was written to and has its old size.
var errWritten = errors.New("the index file was written to")

// fileWatch detects when the mapped file of the served index is truncated or written to. A read of
// a truncated part would end the process.
type fileWatch struct {
	current func() *index.Index
	// report receives other damage to an index.
	report func(*index.Index, error)
	logger *slog.Logger
	// changed receives a value if the file must be checked.
	changed chan struct{}
}

func newFileWatch(current func() *index.Index, report func(*index.Index, error), logger *slog.Logger) *fileWatch {
	return &fileWatch{current: current, report: report, logger: logger, changed: make(chan struct{}, 1)}
}

// requestCheck requests a check of the file of the served index.
func (w *fileWatch) requestCheck() {
	select {
	case w.changed <- struct{}{}:
	default: // a check is pending
	}
}

// damaged handles damage to an index that a call has found.
func (w *fileWatch) damaged(x *index.Index, err error) {
	if errors.Is(err, index.ErrTruncated) {
		w.requestCheck()
		return
	}
	w.report(x, err)
}

// check returns the status for a message that gRPC would read from a truncated file. Messages that
// are copied first need no check because the copy fails.
func (w *fileWatch) check(message any) error {
	m, ok := message.(*index.Message)
	if !ok || !registry.IsBorrowed(m) {
		return nil
	}
	err := m.CheckFile()
	if err == nil {
		return nil
	}
	w.requestCheck()
	return unreadableStatus(err)
}

// unreadable returns the status of a call that panicked on a read from the file of the served
// index, and nil for any other panic.
func (w *fileWatch) unreadable(cause any) error {
	x := w.current()
	if x == nil || !index.FaultIn(x, cause) {
		return nil
	}
	err := cmp.Or(index.FileOf(x).CheckSize(), index.ErrDamaged)
	w.damaged(x, err)
	return unreadableStatus(err)
}

// unreadableStatus returns the status for an index that cannot be read. A server stops if its index
// file was truncated. Clients retry and reach another server or its successor.
func unreadableStatus(err error) error {
	if errors.Is(err, index.ErrTruncated) {
		return status.Error(codes.Unavailable, err.Error())
	}
	return status.Error(codes.DataLoss, err.Error())
}

// run returns an error, with [bundles.Problems], when the file of the served index
// is truncated or written to, and nil when ctx ends.
func (w *fileWatch) run(ctx context.Context) error {
	notices := newFileNotices(ctx, w.logger)
	defer notices.close()
	ticker := time.NewTicker(sizeInterval)
	defer ticker.Stop()
	for {
		file := w.file()
		notices.follow(file)
		if err := file.CheckSize(); err != nil {
			return fileProblem(file, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case event := <-notices.events:
			// The event may be about the file of the previous index.
			file = w.file()
			notices.follow(file)
			if event.Has(fsnotify.Write) && event.Name == notices.path {
				return fileProblem(file, cmp.Or(file.CheckSize(), errWritten))
			}
		case err := <-notices.errors:
			w.logger.WarnContext(ctx, "A notice of a change of the index file may be lost, reading its size", "error", err)
		case <-w.changed:
		case <-ticker.C:
		}
	}
}

// file returns the file of the served index; nil for none.
func (w *fileWatch) file() *index.File {
	x := w.current()
	if x == nil {
		return nil
	}
	return index.FileOf(x)
}

// fileProblem returns the error of an index file that can no longer be served.
func fileProblem(file *index.File, err error) error {
	name, reason := "", "the index file was written to while it was served"
	if file != nil {
		name = file.Name()
	}
	if errors.Is(err, index.ErrTruncated) {
		reason = "the index file was truncated while it was served"
	}
	return fmt.Errorf("watching the index file: %w", bundles.Problems{{
		File: name, Message: reason, Remedy: "replace an index by renaming another to its name, as 'registry build' does",
	}})
}

// fileNotices are the file system notifications for one file.
type fileNotices struct {
	// watcher and the channels are nil if the system provides no notifications.
	watcher *fsnotify.Watcher
	events  <-chan fsnotify.Event
	errors  <-chan error
	// file stays open while its path is watched.
	file *index.File
	path string
}

func newFileNotices(ctx context.Context, logger *slog.Logger) *fileNotices {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		logger.WarnContext(ctx, "Cannot watch the index file, reading its size instead",
			"interval", sizeInterval.String(), "error", err)
		return &fileNotices{}
	}
	return &fileNotices{watcher: watcher, events: watcher.Events, errors: watcher.Errors}
}

// follow watches a file, nil for none, instead of the previous one.
func (n *fileNotices) follow(file *index.File) {
	if n.watcher == nil || n.file == file {
		return
	}
	if n.path != "" {
		// A deleted file has lost its watch.
		_ = n.watcher.Remove(n.path)
	}
	n.file, n.path = file, ""
	if file == nil {
		return
	}
	path := file.WatchPath()
	// Without a watch, the size is checked at intervals.
	if err := n.watcher.Add(path); err == nil {
		n.path = path
	}
}

func (n *fileNotices) close() {
	if n.watcher != nil {
		_ = n.watcher.Close() // nothing was written
	}
}

// watchFile watches the file of the served index. If the file is truncated, the server stops
// serving before watchFile returns the error.
func (s *Server) watchFile(ctx context.Context) error {
	err := s.files.run(ctx)
	if err == nil {
		return nil
	}
	s.health.shutdown()
	// gRPC reads large answers from the file: clients that wait for one get an error.
	closed := s.listener.closeUnread()
	s.config.Logger.ErrorContext(ctx, "Stopping: the index cannot be served any more", "connectionsClosed", closed, "error", err)
	return err
}
