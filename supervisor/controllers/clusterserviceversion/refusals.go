package clusterserviceversion

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
)

// accessSettleTime is how long after a change of permissions a refusal is retried soon. API servers
// apply the change a moment later.
const accessSettleTime = 10 * time.Second

// compareRefusal compares the last refused attempt with the present one. An attempt that the
// OperatorGroup refuses counts as one that the API refused. corrected reports whether the objects to
// apply differ.
func (o *observer) compareRefusal(ctx context.Context, s *state) (corrected bool, access phase.Access, err error) {
	if s.Webhooks.Refused == "" && !phase.RefusedToInstall(s.CSV) {
		return false, phase.Access{}, nil
	}
	present, err := o.attempt(ctx, s)
	if err != nil {
		return false, phase.Access{}, err
	}
	if s.Webhooks.Refused != "" {
		o.refusedAttempts.record(client.ObjectKeyFromObject(s.CSV), present, s.Now)
		return false, phase.Access{}, nil
	}
	last := o.refusedAttempts.last(client.ObjectKeyFromObject(s.CSV), present)
	return last.deployments != present.deployments || last.webhooks != present.webhooks, phase.Access{
		Changed:  last.access != present.access,
		Settling: !last.changed.IsZero() && s.Now.Sub(last.changed) < accessSettleTime,
	}, nil
}

// attempt returns the attempt to install a version.
func (o *observer) attempt(ctx context.Context, s *state) (attempt, error) {
	present := attempt{deployments: hashes(s.deployments), webhooks: s.Webhooks.Refused}
	if len(s.Groups) != 1 || s.Groups[0].Spec.ServiceAccountName == "" {
		return present, nil
	}
	name := s.Groups[0].Spec.ServiceAccountName
	account := accountMetadata()
	err := o.client.Get(ctx, client.ObjectKey{Namespace: s.CSV.Namespace, Name: name}, account)
	if client.IgnoreNotFound(err) != nil {
		return attempt{}, fmt.Errorf("getting ServiceAccount %s/%s: %w", s.CSV.Namespace, name, err)
	}
	present.access, err = accessOf(s.CSV.Namespace, name, account.UID, s.rbac)
	return present, err
}

// accessOf returns a hash of an account and the rules that are granted to it, in any order.
func accessOf(namespace, name string, uid types.UID, r rbac) (string, error) {
	local, global := r.granted(namespace, name)
	parts := []string{name, string(uid)}
	for scope, rules := range map[string][]rbacv1.PolicyRule{"local ": local, "global ": global} {
		for i := range rules {
			text, err := json.Marshal(rules[i])
			if err != nil {
				return "", fmt.Errorf("encoding the rights of ServiceAccount %s/%s: %w", namespace, name, err)
			}
			parts = append(parts, scope+string(text))
		}
	}
	slices.Sort(parts)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(slices.Compact(parts), "\n")))), nil
}

// hashes returns a key for Deployments: the hashes of their specs.
func hashes(deployments []*appsv1.Deployment) string {
	out := make([]string, 0, len(deployments))
	for _, d := range deployments {
		out = append(out, d.Name+"="+d.Labels[api.LabelDeploymentHash])
	}
	return strings.Join(out, ",")
}

// withSource adds to an error of the API the Subscription whose settings may have caused it. The
// version alone does not show the fault.
func withSource(s settings, err error) error {
	faulty := apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
	if s.source == "" || !faulty {
		return err
	}
	return fmt.Errorf("with %s; correct it if it contains the error: %w", s.source, err)
}
