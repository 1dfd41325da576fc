package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// discardTyped drops what was typed before it could have a meaning, if the file is a terminal.
func discardTyped(terminal *os.File) {
	// A file that is no terminal refuses the request and keeps its content.
	_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}

// waitForEnter returns when ctx ends or input has a line. The end of the input is no line.
func waitForEnter(ctx context.Context, input io.Reader) {
	// Reading from the terminal would stop a demo in the background. Ignoring the signal makes it a failed read.
	signal.Ignore(unix.SIGTTIN)
	line := make(chan struct{})
	go func() {
		if _, err := bufio.NewReader(input).ReadString('\n'); err == nil {
			close(line)
		}
	}()
	select {
	case <-line:
	case <-ctx.Done():
	}
}
