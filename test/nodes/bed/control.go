package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/chandlery/chandlery/test/nodes"
)

// socket returns the path of the daemon's control socket. Only the daemon can end and start the
// processes of its nodes. Only the user may read the socket's folder.
func (b bed) socket() string { return filepath.Join(b.DataDir(), "control.sock") }

// listen serves requests until the server is closed.
func listen(ctx context.Context, socket string, running *nodes.Bed) (*http.Server, error) {
	var config net.ListenConfig

	listener, err := config.Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("take orders: %w", err)
	}

	server := &http.Server{Handler: orders(running), ReadHeaderTimeout: 10 * time.Second}

	// Serve returns when the server is closed.
	go func() { _ = server.Serve(listener) }()

	return server, nil
}

// orders returns the handler of the daemon's requests.
func orders(running *nodes.Bed) http.Handler {
	mux := http.NewServeMux()

	for name, do := range map[string]func(context.Context, int) error{"lost": running.Lose, "back": running.Return} {
		mux.HandleFunc("POST /"+name+"/{node}", func(w http.ResponseWriter, r *http.Request) {
			node, err := number(r.PathValue("node"))
			if err == nil {
				err = do(r.Context(), node)
			}

			if err != nil {
				http.Error(w, err.Error(), http.StatusConflict)

				return
			}
		})
	}

	return mux
}

// ask sends a request to the daemon and waits until it is done.
func (b bed) ask(ctx context.Context, out io.Writer, order, node string) error {
	n, err := number(node)
	if err != nil {
		return err
	}

	err = b.Ready(&state{})
	if err != nil {
		return err
	}

	err = b.post(ctx, fmt.Sprintf("%s/%d", order, n))
	if err != nil {
		return err
	}

	fmt.Fprintf(out, "node-%d is %s\n", n, order)

	return nil
}

func (b bed) post(ctx context.Context, path string) error {
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer

			return dialer.DialContext(ctx, "unix", b.socket())
		},
	}}
	defer client.CloseIdleConnections()

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://bed/"+path, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask the daemon of the bed: %w", err)
	}

	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask the daemon of the bed: %w", err)
	}

	answer, err := io.ReadAll(response.Body)

	err = errors.Join(err, response.Body.Close())
	if err != nil {
		return fmt.Errorf("ask the daemon of the bed: %w", err)
	}

	if response.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(bytes.TrimSpace(answer))))
	}

	return nil
}
