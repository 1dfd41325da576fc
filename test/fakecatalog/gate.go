package fakecatalog

import "sync"

// gate delays the answers with content.
type gate struct {
	mu sync.Mutex
	// held is closed at the release; nil while nothing waits.
	held chan struct{}
}

// Hold delays every answer with content until release is called. The digest of the content is not delayed.
func (g *gate) Hold() (release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := make(chan struct{})
	g.held = held
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.held = nil
		close(held)
	})
}

// pass waits for the release.
func (g *gate) pass() {
	g.mu.Lock()
	held := g.held
	g.mu.Unlock()
	if held != nil {
		<-held
	}
}
