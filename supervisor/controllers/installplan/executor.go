package installplan

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/grant"
	"github.com/chandlery/chandlery/supervisor/impersonate"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// executor prepares passes over the steps of plans.
type executor struct {
	cached client.Reader
	// direct reads and writes the objects of steps, past the cache.
	direct   client.Client
	accounts *impersonate.Accounts
	lender   *grant.Lender
	bundles  bundleReader
	unpacker unpacker
	// crdsAsAccount selects the rights of the account of a plan to write CustomResourceDefinitions.
	crdsAsAccount bool
	crdTurns      *crdTurns
}

// execution prepares a pass over the steps of a plan.
func (x *executor) execution(p *operatorsv1alpha1.InstallPlan, in namespaceState, to reporter) (*execution, error) {
	own, steps := x.direct, x.direct
	if in.account != nil {
		var err error
		if steps, err = x.accounts.As(in.account.name); err != nil {
			return nil, err
		}
	}
	return &execution{
		cached: x.cached, client: own, steps: steps, account: in.account, namespace: p.Namespace, plan: p.Name, reverts: p.Annotations[api.AnnotationReverts],
		owners: map[string]*owner{}, definitions: map[*operatorsv1alpha1.Step]*definition{},
		crds:             crdAccess{unbounded: in.unbounded, asAccount: x.crdsAsAccount && in.account != nil, turns: x.crdTurns},
		manifestWarnings: plan.ManifestWarningsOf(p.Annotations),
		reporter:         to,
		content: &content{
			client: own, bundles: x.bundles, unpacker: x.unpacker, namespace: p.Namespace, steps: p.Status.Plan,
			fetched: map[string]plan.Bundle{}, versions: map[string]*unstructured.Unstructured{},
		},
		checker: &checker{client: own, lender: x.lender, reporter: to},
	}, nil
}

// dryRun prepares a pass that writes nothing.
func (x *executor) dryRun(p *operatorsv1alpha1.InstallPlan, in namespaceState, to reporter) (*execution, error) {
	e, err := x.execution(p, in, to)
	if err != nil {
		return nil, err
	}
	e.client, e.steps = client.NewDryRunClient(e.client), client.NewDryRunClient(e.steps)
	return e, nil
}
