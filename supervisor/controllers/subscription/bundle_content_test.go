package subscription

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// shelf is a catalog of bundles.
type shelf map[string]plansteps.Bundle

func (s shelf) State(types.NamespacedName) (catalogs.State, bool) { return catalogs.State{}, false }

var errShelf = errors.New("the shelf is out of reach")

func (s shelf) Bundle(_ context.Context, _ types.NamespacedName, _, _, name string) (plansteps.Bundle, error) {
	b, ok := s[name]
	if !ok {
		return b, errShelf
	}
	return b, nil
}

// hanging is a catalog that never returns certain packages.
type hanging struct {
	shelf

	packages []string
}

func (h hanging) Bundle(ctx context.Context, catalog types.NamespacedName, pkg, channel, name string) (plansteps.Bundle, error) {
	if !slices.Contains(h.packages, pkg) {
		return h.shelf.Bundle(ctx, catalog, pkg, channel, name)
	}
	<-ctx.Done()
	return plansteps.Bundle{}, status.FromContextError(ctx.Err()).Err()
}

// TestDigestsFromHangingCatalog asks such a catalog for more bundles than fit into one batch, and
// another catalog for one.
func TestDigestsFromHangingCatalog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		choose := func(catalog, pkg string) *decision {
			return &decision{subscription: subscription(pkg, pkg), selection: selection{install: &resolution.Choice{
				Catalog: resolution.CatalogKey{Namespace: "olm", Name: catalog}, Package: pkg, Bundle: pkg + ".v1", Entry: &content.Entry{Bundle: &content.Bundle{}},
			}}}
		}
		r := &contentReader{}
		var decisions []*decision
		var stuck []string
		for i := range 50 {
			stuck = append(stuck, fmt.Sprint("stuck", i))
			decisions = append(decisions, choose("hangs", stuck[i]))
		}
		decisions = append(decisions, choose("shop", "lamp"))
		r.catalogs = hanging{shelf: shelf{"lamp.v1": {Objects: []string{"{}"}}}, packages: stuck}
		var told []string
		for range 2 {
			begin := time.Now()
			digests := r.digests(t.Context(), nil, decisions)
			if took := time.Since(begin); took > digestTimeout {
				t.Errorf("the namespace waits for %s", took)
			}
			for _, d := range decisions {
				found := digests[bundleKeyOf(d.install)]
				if d.install.Package == "lamp" && found.text != plansteps.Digest([]string{"{}"}) {
					t.Errorf("what the other catalog has: %+v", found)
				}
				if d.install.Package != "lamp" && !errors.Is(found.err, errCatalogTimeout) {
					t.Errorf("%s: %+v", d.install.Package, found)
				}
			}
			told = append(told, fmt.Sprint(digests[bundleKeyOf(decisions[0].install)].err, digests[bundleKeyOf(decisions[49].install)].err))
		}
		if told[0] != told[1] || !strings.Contains(told[0], "the supervisor retries") {
			t.Errorf("not the same each time: %q", told)
		}
	})
}

// TestIdentify has a catalog whose snapshot has no digests. It returns one bundle, an empty one, and
// none.
func TestIdentify(t *testing.T) {
	state := read(t)
	lamp, fan, husk := subscription("lamp", "lamp"), subscription("fan", "fan"), subscription("husk", "husk")
	o := observed(state, lamp, fan, husk)
	c := o.catalogs[shop]
	c.State.Snapshot = &catalogs.Snapshot{Content: state.Snapshot.Content}
	o.catalogs[shop] = c
	r := &contentReader{catalogs: shelf{"lamp.v2": {Objects: []string{"{2}"}}, "husk.v1": {}}}

	decisions := r.identify(t.Context(), o.catalogs, decide(t.Context(), o, resolution.Resolve))
	if d := decisions[0]; d.err != nil || d.identities[0].Content != plansteps.Digest([]string{"{2}"}) {
		t.Errorf("lamp: versions %+v, error %v", d.identities, d.err)
	}
	if d := decisions[1]; d.err != nil || d.identities[0].Content != "image registry.example/fan:1" {
		t.Errorf("fan, which is in an image: versions %+v, error %v", d.identities, d.err)
	}
	if d := decisions[2]; !errors.Is(d.err, errContentUnknown) {
		t.Errorf("husk: %v", d.err)
	}

	r.catalogs = shelf{}
	decisions = r.identify(t.Context(), o.catalogs, decide(t.Context(), o, resolution.Resolve))
	if _, planning := errors.AsType[*planError](decisions[0].err); !planning || !errors.Is(decisions[0].err, errShelf) || decisions[0].install != nil {
		t.Errorf("out of reach: installs %+v, error %v", decisions[0].install, decisions[0].err)
	}
}
