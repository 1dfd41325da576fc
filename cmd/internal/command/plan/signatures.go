package plan

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/signature"
	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/supervisor/imagesources/deployed"
)

// newPolicies returns the rules of a supervisor for signatures, and those in the policies of OpenShift if it applies them.
func newPolicies(ctx context.Context, reader client.Reader, supervisor *deployed.Supervisor) *imagepolicy.Policies {
	policies := imagepolicy.NewFixed(supervisor.Origin, supervisor.Verification)
	if supervisor.OpenShift {
		// The log of the supervisor is not the log of this program.
		quiet := log.IntoContext(ctx, logr.Discard())
		policies.AwaitNodePolicies()
		policies.Found(quiet, reader, discovery.Result{Verdict: discovery.Verdict{Outcome: discovery.Installed}})
	}
	return policies
}

// verify returns an error if the image of a bundle does not meet the rules that apply to it.
func verify(ctx context.Context, reader client.Reader, policies *imagepolicy.Policies, c *image.Client, query imagepolicy.Query) error {
	query.Use = signature.Bundles
	rules, err := policies.Rules(ctx, reader, query)
	if err != nil {
		return err //nolint:wrapcheck // names the image
	}
	if err := rules.Forbidden(query.Image); err != nil || !rules.Any() {
		return err
	}
	digest, err := c.Find(ctx, query.Image)
	if err == nil {
		err = rules.Check(ctx, c, query.Image, digest)
	}
	return rules.Required(err)
}
