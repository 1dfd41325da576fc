package operatorgroup

import (
	"sync"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/chandlery/chandlery/supervisor/providedapis"
)

// granted holds the claims that this process wrote and that the cache may lack. It is safe for
// concurrent use. The zero value is ready to use.
type granted struct {
	mu   sync.Mutex
	last map[types.UID]grant
}

// grant holds the claims of an OperatorGroup at a resourceVersion.
type grant struct {
	version string
	claims  string
}

// note records written claims with the resourceVersion that the API server returned.
func (g *granted) note(group *operatorsv1.OperatorGroup, claims providedapis.Set) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == nil {
		g.last = map[types.UID]grant{}
	}
	g.last[group.UID] = grant{version: group.ResourceVersion, claims: claims.String()}
}

// complete returns a group with its current claims. It deletes the record once the cache has them.
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
