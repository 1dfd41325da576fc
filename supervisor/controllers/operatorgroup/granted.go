package operatorgroup

import (
	"sync"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/chandlery/chandlery/supervisor/providedapis"
)

// granted remembers the claims that this process wrote and that the cache may lack. It is safe for
// concurrent use; the zero value is ready.
type granted struct {
	mu   sync.Mutex
	last map[types.UID]grant
}

// grant is what an OperatorGroup has claimed since a version of it.
type grant struct {
	version string
	claims  string
}

// note records the claims that were written, and the version that the API server returned.
func (g *granted) note(group *operatorsv1.OperatorGroup, claims providedapis.Set) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == nil {
		g.last = map[types.UID]grant{}
	}
	g.last[group.UID] = grant{version: group.ResourceVersion, claims: claims.String()}
}

// complete returns a group with the claims that it has by now. What the cache has as well is
// forgotten.
func (g *granted) complete(group *operatorsv1.OperatorGroup) *operatorsv1.OperatorGroup {
	g.mu.Lock()
	defer g.mu.Unlock()
	last, known := g.last[group.UID]
	if !known {
		return group
	}
	order, err := resourceversion.CompareResourceVersion(group.ResourceVersion, last.version)
	if err != nil || order >= 0 {
		delete(g.last, group.UID)
		return group
	}
	changed := group.DeepCopy()
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	changed.Annotations[operatorsv1.OperatorGroupProvidedAPIsAnnotationKey], changed.ResourceVersion = last.claims, last.version
	return changed
}
