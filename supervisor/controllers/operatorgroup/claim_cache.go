package operatorgroup

import (
	"sync"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

// claimCache holds the claims that this process wrote and that the cache may lack. It is safe for
// concurrent use. The zero value is ready to use.
type claimCache struct {
	mu   sync.Mutex
	last map[types.UID]cachedClaims
}

// cachedClaims holds the claims of an OperatorGroup at a resourceVersion.
type cachedClaims struct {
	version string
	claims  string
}

// add records written claims with the resourceVersion that the API server returned.
func (c *claimCache) add(group *operatorsv1.OperatorGroup, claims providedapis.Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[types.UID]cachedClaims{}
	}
	c.last[group.UID] = cachedClaims{version: group.ResourceVersion, claims: claims.String()}
}

// withWritten returns a group with its current claims. It deletes the record once the cache has them.
func (c *claimCache) withWritten(group *operatorsv1.OperatorGroup) *operatorsv1.OperatorGroup {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.last[group.UID]
	if !known {
		return group
	}
	order, err := resourceversion.CompareResourceVersion(group.ResourceVersion, last.version)
	if err != nil || order >= 0 {
		delete(c.last, group.UID)
		return group
	}
	changed := group.DeepCopy()
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	changed.Annotations[operatorsv1.OperatorGroupProvidedAPIsAnnotationKey], changed.ResourceVersion = last.claims, last.version
	return changed
}
