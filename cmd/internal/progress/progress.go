// Package progress shows on a terminal that long work goes on. Where there is no
// terminal, as in scripts and containers, it shows nothing.
package progress

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

// delay is how long work takes before anything is shown: short work is over
// before somebody could read it.
const delay = 300 * time.Millisecond

// interval is the time between two pictures.
const interval = 100 * time.Millisecond

// Start shows that work goes on, until the function that it returns is called,
// which leaves nothing behind. Quiet shows nothing.
func Start(out io.Writer, quiet bool, what string) (done func()) {
	if quiet || !terminal.IsTerminal(out) {
		return func() {}
	}
	return show(terminal.Unfiltered(out), terminal.Escape(what), delay)
}

// show draws a spinner with the time that has passed.
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
			// It is drawn by the ticks below and by nothing else.
			progressbar.OptionThrottle(0),
			progressbar.OptionSetSpinnerChangeInterval(0),
		)
		ticks := time.NewTicker(interval)
		defer ticks.Stop()
		for {
			// A picture that cannot be drawn is missed by nobody.
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
