package suite_test

import (
	"encoding/json"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// logLine has the message, the level and the values of a line of a log.
type logLine map[string]any

// logLines collects the lines of a log. It is safe for concurrent use.
type logLines struct {
	mu    sync.Mutex
	lines []logLine
}

// logger returns a logger whose lines are collected.
func (l *logLines) logger() logr.Logger {
	return funcr.NewJSON(func(text string) {
		var line logLine
		if json.Unmarshal([]byte(text), &line) != nil {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, line)
	}, funcr.Options{})
}

// of returns the lines with a message, without what identifies their controller.
func (l *logLines) of(message string) (found []logLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if line["msg"] != message {
			continue
		}
		shown := logLine{}
		for _, key := range []string{"level", "msg", "apiService", "owner"} {
			shown[key] = line[key]
		}
		found = append(found, shown)
	}
	return found
}
