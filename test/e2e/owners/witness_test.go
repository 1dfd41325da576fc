package owners_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

// sight is one version of an InstallPlan.
type sight struct {
	name, version string
	uid           types.UID
	owners        []types.UID
	noted         []types.UID // the Subscriptions that the InstallPlan records
	approval      operatorsv1alpha1.Approval
	approved      bool
	versions      []string
	phase         operatorsv1alpha1.InstallPlanPhase
}

// witness records every version of every InstallPlan.
type witness struct {
	mu     sync.Mutex
	sights map[string][]sight // by namespace
}

// OnAdd records a new InstallPlan.
func (w *witness) OnAdd(o any, _ bool) { w.see(o) }

// OnUpdate records a changed InstallPlan.
func (w *witness) OnUpdate(_, o any) { w.see(o) }

// OnDelete does nothing.
func (w *witness) OnDelete(any) {}

func (w *witness) see(o any) {
	p, ok := o.(*operatorsv1alpha1.InstallPlan)
	if !ok || p.DeletionTimestamp != nil {
		return
	}
	s := sight{name: p.Name, version: p.ResourceVersion, uid: p.UID, approval: p.Spec.Approval, approved: p.Spec.Approved, versions: p.Spec.ClusterServiceVersionNames, phase: p.Status.Phase}
	for _, ref := range p.OwnerReferences {
		s.owners = append(s.owners, ref.UID)
	}
	for key := range p.Annotations {
		if uid, serves := strings.CutPrefix(key, api.PrefixServes); serves {
			s.noted = append(s.noted, types.UID(uid))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sights[p.Namespace] = append(w.sights[p.Namespace], s)
}

// of returns the versions recorded in a namespace so far.
func (w *witness) of(namespace string) []sight {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sights[namespace])
}

// cutShort reports whether only InstallPlans that were deleted before their completion have
// installed a version. Then another InstallPlan may have to install the rest.
func cutShort(sights []sight, present map[types.UID]bool, csv string) bool {
	begun := false
	for _, s := range sights {
		if !slices.Contains(s.versions, csv) {
			continue
		}
		if s.phase == operatorsv1alpha1.InstallPlanPhaseComplete {
			return false
		}
		begun = begun || (s.phase == operatorsv1alpha1.InstallPlanPhaseInstalling && !present[s.uid])
	}
	return begun
}

// bare returns the versions of InstallPlans that have fewer owners than at their creation although
// the test has removed none. An InstallPlan with removed owners may lack them until it has all
// again. Subscriptions that were deleted or changed do not count: the supervisor removes their
// reference and their record in one write.
func bare(sights []sight, stripped map[string]bool, gone map[types.UID]bool) []string {
	creators := map[types.UID][]types.UID{}
	excused := map[types.UID]bool{}
	var found []string
	for _, s := range sights {
		of, known := creators[s.uid]
		if !known {
			creators[s.uid], of = s.owners, s.owners
			if len(s.owners) == 0 {
				found = append(found, fmt.Sprintf("plan %s was made without an owner", s.name))
			}
		}
		missing := slices.DeleteFunc(slices.Clone(of), func(uid types.UID) bool {
			return gone[uid] || slices.Contains(s.owners, uid) || !slices.Contains(s.noted, uid)
		})
		switch {
		case len(missing) == 0:
			excused[s.uid] = stripped[s.version]
		case stripped[s.version]:
			excused[s.uid] = true
		case !excused[s.uid]:
			found = append(found, fmt.Sprintf("plan %s (%v) lacked its creators %v in version %s", s.name, s.versions, missing, s.version))
		}
	}
	return found
}
