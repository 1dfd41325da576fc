// Package progress shows the progress of long work on a terminal. Without a terminal, as in scripts
// and containers, it shows nothing.
package progress

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

// delay is the time before anything is shown. Shorter work ends before a user could read the output.
const delay = 300 * time.Millisecond

// interval is the time between two updates.
const interval = 100 * time.Millisecond

// Start shows progress until the returned function is called, which erases it. If quiet is set, it shows nothing.
func Start(out io.Writer, quiet bool, what string) (done func()) {
	if quiet || !terminal.IsTerminal(out) {
		return func() {}
	}
	return show(terminal.Unfiltered(out), terminal.Escape(what), delay)
}

// show draws a spinner with the elapsed time.
func show(out io.Writer, what string, delay time.Duration) (done func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-stop:
			return
		case <-time.After(delay):
		}
		bar := progressbar.NewOptions(-1,
			progressbar.OptionSetWriter(out),
			progressbar.OptionSetDescription(what),
			progressbar.OptionSpinnerType(14),
			progressbar.OptionSetElapsedTime(true),
			progressbar.OptionClearOnFinish(),
			// Only the ticks below draw the spinner.
			progressbar.OptionThrottle(0),
			progressbar.OptionSetSpinnerChangeInterval(0),
		)
		ticks := time.NewTicker(interval)
		defer ticks.Stop()
		for {
			// A failure to draw has no consequence.
			_ = bar.Add(1)
			select {
			case <-stop:
				_ = bar.Finish()
				return
			case <-ticks.C:
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}
