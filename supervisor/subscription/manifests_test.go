package subscription

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// shelf is a catalog that is asked for bundles.
type shelf map[string]plan.Bundle

func (s shelf) State(types.NamespacedName) (catalogs.State, bool) { return catalogs.State{}, false }

var errShelf = errors.New("the shelf is out of reach")

func (s shelf) Bundle(_ context.Context, _ types.NamespacedName, _, _, name string) (plan.Bundle, error) {
	b, ok := s[name]
	if !ok {
		return b, errShelf
	}
	return b, nil
}

// TestLearn has a catalog whose snapshot tells no digests, and which then gives
// one bundle, an empty one, and none.
func TestLearn(t *testing.T) {
	state := read(t)
	lamp, fan, husk := subscription("lamp", "lamp"), subscription("fan", "fan"), subscription("husk", "husk")
	o := observed(state, lamp, fan, husk)
	c := o.catalogs[shop]
	c.State.Snapshot = &catalogs.Snapshot{Content: state.Snapshot.Content}
	o.catalogs[shop], o.digests = c, map[manifests]digest{}
	r := &Reconciler{catalogs: shelf{"lamp.v2": {Objects: []string{"{2}"}}, "husk.v1": {}}}

	decisions := decide(t.Context(), o, resolver.Resolve)
	r.learn(t.Context(), o, decisions)
	for _, d := range decisions {
		o.identify(d)
	}
	if d := decisions[0]; d.err != nil || d.identities[0].Content != plan.Digest([]string{"{2}"}) {
		t.Errorf("lamp: versions %+v, error %v", d.identities, d.err)
	}
	if d := decisions[1]; !errors.Is(d.err, plan.ErrNoInlineManifests) {
		t.Errorf("fan, which is in an image: %v", d.err)
	}
	if d := decisions[2]; !errors.Is(d.err, errContentUnknown) {
		t.Errorf("husk: %v", d.err)
	}

	r.catalogs, o.digests = shelf{}, map[manifests]digest{}
	decisions = decide(t.Context(), o, resolver.Resolve)
	r.learn(t.Context(), o, decisions)
	o.identify(decisions[0])
	if _, planning := errors.AsType[*planError](decisions[0].err); !planning || !errors.Is(decisions[0].err, errShelf) || decisions[0].install != nil {
		t.Errorf("out of reach: installs %+v, error %v", decisions[0].install, decisions[0].err)
	}
}
