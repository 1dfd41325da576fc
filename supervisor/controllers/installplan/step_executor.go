package installplan

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/rbac/grant"
	"github.com/chandlery/chandlery/supervisor/rbac/impersonate"
)

// executor prepares passes over the steps of plans.
type executor struct {
	cached client.Reader
	// direct reads and writes the objects of steps, past the cache.
	direct   client.Client
	accounts *impersonate.Accounts
	grants   *grant.Granter
	bundles  bundleReader
	images   imageReader
	kinds    plansteps.Kinds
	// crdsAsAccount selects the permissions of the account of a plan to write CustomResourceDefinitions.
	crdsAsAccount bool
	crdLocks      *crdLocks
	equalCRDs     *equalCRDs
	served        listKinds
}

// execution prepares a pass over the steps of a plan. A dry run writes nothing.
func (x *executor) execution(p *operatorsv1alpha1.InstallPlan, in namespaceState, to reporter, dryRun bool) (*execution, error) {
	own, steps := x.direct, x.direct
	if in.account != nil {
		var err error
		if steps, err = x.accounts.As(in.account.name); err != nil {
			return nil, err
		}
	}
	if dryRun {
		own, steps = client.NewDryRunClient(own), client.NewDryRunClient(steps)
	}
	c := &content{
		client: own, bundles: x.bundles, images: x.images, kinds: x.kinds, namespace: p.Namespace, steps: p.Status.Plan,
		fetched: map[string]plansteps.Bundle{}, versions: map[string]*unstructured.Unstructured{},
	}
	o := &observer{cached: x.cached, live: own, content: c, namespace: p.Namespace}
	crds := &crdApplier{
		observer: o, checker: &crdChecker{client: own, grants: x.grants, reporter: to}, writer: own, unbounded: in.unbounded,
		locks: x.crdLocks, equal: x.equalCRDs, reverts: p.Annotations[api.AnnotationReverts], prepared: map[*operatorsv1alpha1.Step]*crdChange{},
	}
	if x.crdsAsAccount && in.account != nil {
		crds.writer, crds.asAccount = steps, true
	}
	return &execution{
		plan: p.Name, namespace: p.Namespace, byOthers: createdByOthers(p), account: in.account, kinds: x.served,
		observer: o, content: c, crds: crds,
		owners:   &owners{observer: o, byName: map[string]*owner{}},
		objects:  &objectApplier{observer: o, writer: steps, own: own, reporter: to},
		warnings: &warningRecorder{client: own, content: c, ofManifests: plansteps.ManifestWarningsOf(p.Annotations), reporter: to},
	}, nil
}
