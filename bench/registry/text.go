package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chandlery/chandlery/bundles/fbc"
)

// textWay is a way to read the text of a catalog.
type textWay struct {
	name string
	read func(ctx context.Context, dir string) error
}

// textWays returns the ways, the one of the target first.
func textWays() []textWay {
	return []textWay{
		{"fbc.Open, which finds every object and checks the syntax", openText},
		{"json.Decoder, object by object", eachFile(split)},
		{"json.Decoder, token by token", eachFile(tokenise)},
		{"reading alone", eachFile(func([]byte) error { return nil })},
	}
}

// openText finds the objects of a catalog with the loader.
func openText(ctx context.Context, dir string) error {
	reader, err := fbc.Open(ctx, os.DirFS(dir), fbc.Options{})
	if err != nil {
		return err
	}
	return errors.Join(reader.Problems().OrNil(), reader.Close())
}

// eachFile reads the files of a directory in parallel.
func eachFile(visit func([]byte) error) func(context.Context, string) error {
	return func(ctx context.Context, dir string) error {
		names, err := fbc.Files(os.DirFS(dir))
		if err != nil {
			return err
		}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(runtime.NumCPU())
		for _, name := range names {
			group.Go(func() error {
				if err := context.Cause(ctx); err != nil {
					return err
				}
				data, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					return err
				}
				return visit(data)
			})
		}
		return group.Wait()
	}
}

// split splits a file into its objects without decoding them.
func split(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	for {
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil //nolint:nilerr // the end, or a YAML file
		}
	}
}

// tokenise reads every token of a file.
func tokenise(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	for {
		_, err := decoder.Token()
		if err != nil {
			return nil //nolint:nilerr // the end, or a YAML file
		}
	}
}

// timeText returns the elapsed time and the processor time of a way.
func timeText(ctx context.Context, dir string, read func(context.Context, string) error) (wall, cpu float64, err error) {
	runtime.GC()
	before, err := cpuTime(os.Getpid())
	if err != nil {
		return math.NaN(), math.NaN(), err
	}
	began := time.Now()
	if err := read(ctx, dir); err != nil {
		return math.NaN(), math.NaN(), fmt.Errorf("reading the text: %w", err)
	}
	wall = time.Since(began).Seconds()
	after, err := cpuTime(os.Getpid())
	return wall, after - before, err
}
