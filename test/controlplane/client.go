package controlplane

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api/scheme"
)

// Client returns a client of the test package's control plane. It has all permissions and knows
// every kind that a supervisor knows. It has no rate limit and does not log warnings of the API
// server.
func Client(tb testing.TB) client.WithWatch {
	tb.Helper()

	kinds, err := scheme.New()
	if err != nil {
		tb.Fatal(err)
	}

	c, err := client.NewWithWatch(unhindered(tb), client.Options{Scheme: kinds})
	if err != nil {
		tb.Fatalf("make a client: %v", err)
	}

	return c
}

// fills bounds the time to fill a cache.
const fills = time.Minute

// Cache returns a filled cache of the kinds of objects, which runs until the test ends.
func Cache(tb testing.TB, objects ...client.Object) cache.Cache {
	tb.Helper()

	kinds, err := scheme.New()
	if err != nil {
		tb.Fatal(err)
	}

	c, err := cache.New(unhindered(tb), cache.Options{Scheme: kinds})
	if err != nil {
		tb.Fatalf("make a cache: %v", err)
	}

	var followed []string

	for _, o := range objects {
		followed = append(followed, fmt.Sprintf("%T", o))

		_, err := c.GetInformer(tb.Context(), o, cache.BlockUntilSynced(false))
		if err != nil {
			tb.Fatalf("follow %T: %v", o, err)
		}
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	ended := make(chan error, 1)

	go func() { ended <- c.Start(ctx) }()

	tb.Cleanup(func() {
		cancel()

		err := <-ended
		if err != nil {
			tb.Errorf("the cache: %v", err)
		}
	})

	filling, stop := context.WithTimeout(tb.Context(), fills)
	defer stop()

	if !c.WaitForCacheSync(filling) {
		tb.Fatalf("the cache did not fill within %s; is each of these kinds served: %v?", fills, followed)
	}

	return c
}

func unhindered(tb testing.TB) *rest.Config {
	tb.Helper()

	cfg := Get(tb).Config()
	cfg.QPS, cfg.WarningHandler = -1, rest.NoWarnings{}

	return cfg
}
