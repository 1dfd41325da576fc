package packages_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/realcatalogs"
	"github.com/chandlery/chandlery/test/testenv"
)

const (
	// listers is the number of clients that list all packages at once, and rounds how often each of them does.
	listers = 10
	rounds  = 3
	// yamlListers is the number of further clients, whose lists take much memory.
	yamlListers = 20
)

// TestListsAtOnce lists all packages of a real catalog ten times at once in JSON and twenty times in YAML, while another client
// requests tables. Every answer is complete, or some in YAML have status 429. The supervisor has never more memory resident
// than its pod may have.
func TestListsAtOnce(t *testing.T) {
	catalog := realcatalogs.Dir(t, realcatalogs.Metadata)
	entries, err := os.ReadDir(catalog)
	if err != nil {
		t.Fatal(err)
	}
	limit := asInPod(t)
	s := openWith(t, programs.Serve(t, filepath.Join(bin, "registry"), catalog), "one")
	l := s.lists(len(entries))
	// Lists in YAML wait for each other.
	l.limit = time.Minute
	testenv.Until(t, testenv.Patience, "a table of all packages", func(ctx context.Context) string {
		if err := l.table(ctx); err != nil {
			return err.Error()
		}
		return ""
	})
	listing, end := context.WithCancel(t.Context())
	defer end()
	tables := 0
	reader, tableContext := errgroup.WithContext(t.Context())
	reader.Go(func() error {
		for ; listing.Err() == nil; tables++ {
			if err := l.table(tableContext); err != nil {
				return err
			}
		}
		return nil
	})
	all, ctx := errgroup.WithContext(t.Context())
	for range listers {
		all.Go(func() error {
			for range rounds {
				if err := l.complete(ctx, "json"); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var answered, refused atomic.Int32
	for range yamlListers {
		all.Go(func() error {
			err := l.complete(ctx, "yaml")
			if busy, is := errors.AsType[*statusError](err); is && busy.code == http.StatusTooManyRequests {
				refused.Add(1)
				return nil
			}
			answered.Add(1)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	end()
	if err := reader.Wait(); err != nil || tables == 0 {
		t.Errorf("%d tables beside the lists: %v", tables, err)
	}
	if answered.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d lists in YAML were answered, and %d refused", answered.Load(), refused.Load())
	}
	used := peak(t, s.pods["one"].process.PID())
	t.Logf("%d lists of %d packages, %d of %d in YAML, %d tables: at most %d MiB of %d MiB",
		listers*rounds, len(entries), answered.Load(), yamlListers, tables, used>>20, limit>>20)
	if used > limit {
		t.Errorf("%d bytes were resident, want at most %d", used, limit)
	}
}

// asInPod sets the environment that the Deployment sets for the memory of the supervisor. It returns the limit of its pod in
// bytes.
func asInPod(t *testing.T) int64 {
	t.Helper()
	dir, err := buildcache.SourceDir("deploy")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "supervisor", "deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var installed appsv1.Deployment
	if err := yaml.Unmarshal(text, &installed); err != nil {
		t.Fatal(err)
	}
	container := installed.Spec.Template.Spec.Containers[0]
	for _, variable := range container.Env {
		if variable.Name == "GOMEMLIMIT" {
			t.Setenv(variable.Name, variable.Value)
		}
	}
	limit := container.Resources.Limits.Memory().Value()
	if limit == 0 || os.Getenv("GOMEMLIMIT") == "" {
		t.Fatalf("the supervisor's pod has a limit of %d bytes and GOMEMLIMIT %q", limit, os.Getenv("GOMEMLIMIT"))
	}
	return limit
}

// peak returns the largest memory in bytes that was resident in a process.
func peak(t *testing.T, pid int) int64 {
	t.Helper()
	p, err := procfs.NewProc(pid)
	if err != nil {
		t.Fatal(err)
	}
	status, err := p.NewStatus()
	if err != nil {
		t.Fatal(err)
	}
	return int64(status.VmHWM)
}
