package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/manifest"
	"github.com/chandlery/chandlery/test/pause"
)

// catalogOfIcons reads icons in a second each. Those of the namespace slow are never sent.
type catalogOfIcons struct{ running, most, reads atomic.Int32 }

func (c *catalogOfIcons) read(ctx context.Context, item manifest.Item) (manifest.Icon, error) {
	now := c.running.Add(1)
	defer c.running.Add(-1)
	c.reads.Add(1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	if item.Source.Namespace == "slow" {
		<-ctx.Done()
		return manifest.Icon{}, ctx.Err()
	}
	pause.For(ctx, time.Second)
	return manifest.Icon{Data: "aWNvbg==", MediaType: "image/png"}, nil
}

// pictured is a package with an icon.
func pictured(namespace, name string) manifest.Item {
	return manifest.Item{
		Source:  &manifest.Source{Namespace: namespace, Name: "shop"},
		Package: &manifest.Package{Name: name, Icon: manifest.IconSource{Channel: "stable", Bundle: name + ".v1", CSV: name + ".v1"}},
	}
}

// TestIconReadsAreLimited sends many requests for icons at once. Equal ones share a read.
func TestIconReadsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		catalog := &catalogOfIcons{}
		i := newIcons(manifest.NewIndex("olm"), catalog.read)
		ended := make(chan error)
		for n := range 48 {
			go func() {
				content, mediaType, err := i.content(t.Context(), pictured(fmt.Sprintf("n%d", n%3), fmt.Sprintf("p%d", n%6)))
				if err == nil && (string(content) != "icon" || mediaType != "image/png") {
					err = fmt.Errorf("icon %q of type %s", content, mediaType)
				}
				ended <- err
			}()
		}
		for range 48 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if reads, most := catalog.reads.Load(), catalog.most.Load(); reads != 6 || most != maxIconReads {
			t.Errorf("%d reads, %d at once", reads, most)
		}
	})
}

// TestSlowIcons has a namespace whose catalogs send no icons. Those of another one are sent, and a request that ends does
// not wait.
func TestSlowIcons(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		catalog := &catalogOfIcons{}
		i := newIcons(manifest.NewIndex("olm"), catalog.read)
		ended := make(chan error)
		for n := range 3 {
			go func() {
				_, _, err := i.content(t.Context(), pictured("slow", fmt.Sprintf("p%d", n)))
				ended <- err
			}()
		}
		synctest.Wait()
		begun := time.Now()
		if _, _, err := i.content(t.Context(), pictured("quick", "lamp")); err != nil || time.Since(begun) != time.Second {
			t.Errorf("the icon of another namespace after %s: %v", time.Since(begun), err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errGone)
		defer cancel()
		begun = time.Now()
		if _, err := i.readShared(ctx, pictured("slow", "p0")); !errors.Is(err, errGone) || time.Since(begun) != time.Second {
			t.Errorf("a request that ended returns %v after %s", err, time.Since(begun))
		}
		for range 3 {
			err := <-ended
			if seconds, retry := apierrors.SuggestsClientDelay(err); !apierrors.IsServiceUnavailable(err) || !retry || seconds != retryAfter {
				t.Errorf("a slow icon: %v", err)
			}
		}
	})
}

var errGone = errors.New("the client is gone")

// TestLargeIcon has an icon that no API server stores. The drawing replaces it.
func TestLargeIcon(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{maxIcon: "image/png", maxIcon + 4: drawingType} {
		i := newIcons(manifest.NewIndex("olm"), func(context.Context, manifest.Item) (manifest.Icon, error) {
			return manifest.Icon{Data: strings.Repeat("a", size), MediaType: "image/png"}, nil
		})
		if _, mediaType, err := i.content(t.Context(), pictured("olm", "lamp")); err != nil || mediaType != want {
			t.Errorf("an icon of %d bytes has the type %s: %v", size, mediaType, err)
		}
	}
}
