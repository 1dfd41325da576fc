package fbc

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chandlery/chandlery/bundles/internal/jsontext"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

// eachCatalog runs a benchmark over the real catalogs.
func eachCatalog(b *testing.B, run func(b *testing.B, root fs.FS)) {
	b.Helper()
	for _, name := range []string{realcatalogs.Metadata, realcatalogs.Objects} {
		b.Run(name, func(b *testing.B) {
			root := os.DirFS(realcatalogs.Dir(b, name))
			files, err := Files(root)
			if err != nil {
				b.Fatal(err)
			}
			var size int64
			for _, name := range files {
				info, err := fs.Stat(root, name)
				if err != nil {
					b.Fatal(err)
				}
				size += info.Size()
			}
			b.SetBytes(size)
			begin := processorTime(b)
			run(b, root)
			used := processorTime(b) - begin
			b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// processorTime returns the processor time of this process. On a busy machine it is more precise
// than the elapsed time.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkTokenise measures a lower bound for reading a catalog. It reads the files with the
// concurrency of [Load] and tokenizes them, with the scanner of this package and with
// encoding/json.
func BenchmarkTokenise(b *testing.B) {
	for name, tokenise := range map[string]func(file fs.File, buffer []byte) error{
		"Scanner": scanTokens, "EncodingJSON": decodeTokens,
	} {
		b.Run(name, func(b *testing.B) {
			eachCatalog(b, func(b *testing.B, root fs.FS) {
				b.Helper()
				buffers := newBuffers()
				b.ReportAllocs()
				for b.Loop() {
					if err := eachFile(root, buffers, tokenise); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// newBuffers returns a buffer for each file read concurrently, larger than any of the files.
func newBuffers() chan []byte {
	buffers := make(chan []byte, runtime.GOMAXPROCS(0))
	for range cap(buffers) {
		buffers <- make([]byte, 32<<20)
	}
	return buffers
}

// eachFile visits the files of a catalog in parallel.
func eachFile(root fs.FS, buffers chan []byte, visit func(file fs.File, buffer []byte) error) error {
	files, err := Files(root)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(cap(buffers))
	for _, name := range files {
		group.Go(func() error {
			buffer := <-buffers
			defer func() { buffers <- buffer }()
			file, err := root.Open(name)
			if err != nil {
				return err
			}
			defer file.Close()
			return visit(file, buffer)
		})
	}
	return group.Wait()
}

var errNotJSON = errors.New("not JSON")

func scanTokens(file fs.File, buffer []byte) error {
	n, err := io.ReadFull(file, buffer)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	text := buffer[:n]
	scan := jsontext.Scanner{Text: text}
	for i := jsontext.SkipSpace(text, 0); i < n; i = jsontext.SkipSpace(text, i) {
		if i = scan.Value(i); i == jsontext.Broken {
			return errNotJSON
		}
	}
	return nil
}

func decodeTokens(file fs.File, _ []byte) error {
	decoder := json.NewDecoder(file)
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// BenchmarkOpen is the first half of reading a catalog.
func BenchmarkOpen(b *testing.B) {
	eachCatalog(b, func(b *testing.B, root fs.FS) {
		b.Helper()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Open(b.Context(), root, Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRead reads a catalog package by package, several in parallel, and keeps none of it.
func BenchmarkRead(b *testing.B) {
	eachCatalog(b, func(b *testing.B, root fs.FS) {
		b.Helper()
		b.ReportAllocs()
		for b.Loop() {
			r, err := Open(b.Context(), root, Options{})
			if err != nil {
				b.Fatal(err)
			}
			var group errgroup.Group
			group.SetLimit(runtime.GOMAXPROCS(0))
			for _, name := range r.Packages() {
				group.Go(func() error {
					_, err := r.Package(b.Context(), name)
					return err
				})
			}
			if err := group.Wait(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkLoad reads a catalog and keeps all of it.
func BenchmarkLoad(b *testing.B) {
	eachCatalog(b, func(b *testing.B, root fs.FS) {
		b.Helper()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Load(b.Context(), root, Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
