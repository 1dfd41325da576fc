package migration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

const (
	// defaultCatalogNamespace is the default of OLM and of the supervisors.
	defaultCatalogNamespace = "olm"
	// flagOLMCatalogs is the flag of OLM's program catalog with the namespace of the global catalogs.
	flagOLMCatalogs = "namespace"
	// FlagCatalogs is the flag of the supervisors with that namespace, and envCatalogs the variable.
	FlagCatalogs = "global-catalog-namespace"
	envCatalogs  = "SUPERVISOR_GLOBAL_CATALOG_NAMESPACE"
	// flagPackages is the flag of the supervisors that sets whether they serve PackageManifests, and envPackages the variable.
	flagPackages = "packagemanifests"
	envPackages  = "SUPERVISOR_PACKAGEMANIFESTS"
)

// CatalogNamespaces are the namespaces whose catalogs serve all namespaces; empty if unknown.
type CatalogNamespaces struct {
	OLM, Supervisors string
}

// blocker returns why the supervisors would not find the catalogs of OLM; empty if they find them.
func (n CatalogNamespaces) blocker() string {
	if n.OLM == "" || n.Supervisors == "" || n.OLM == n.Supervisors {
		return ""
	}
	return fmt.Sprintf("the global catalogs of OLM are in namespace %s, and the supervisors look for them in %s; start the supervisors with --%s=%s",
		n.OLM, n.Supervisors, FlagCatalogs, n.OLM)
}

// risk returns what the supervisors need to find the catalogs of OLM, if their settings are unknown; empty otherwise.
func (n CatalogNamespaces) risk() string {
	if n.Supervisors != "" || n.OLM == "" || n.OLM == defaultCatalogNamespace {
		return ""
	}
	return fmt.Sprintf("the global catalogs of OLM are in namespace %s: start the supervisors with --%s=%s", n.OLM, FlagCatalogs, n.OLM)
}

// readCatalogNamespaces reads the namespaces from the Deployments of OLM, and from those of the supervisors unless
// their namespace is known.
func readCatalogNamespaces(ctx context.Context, o Options, workloads []competing.Workload) (CatalogNamespaces, error) {
	found := CatalogNamespaces{Supervisors: o.GlobalCatalogNamespace}
	for i := range workloads {
		w := &workloads[i]
		if w.Program != competing.OLMCatalogOperator {
			continue
		}
		d := &appsv1.Deployment{}
		key := client.ObjectKey{Namespace: w.Namespace, Name: w.Name}
		err := o.Client.Get(ctx, key, d)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return CatalogNamespaces{}, fmt.Errorf("reading Deployment %s: %w", key, err)
		}
		found.OLM = containerSetting(d, flagOLMCatalogs, "", defaultCatalogNamespace)
	}
	if found.Supervisors != "" {
		return found, nil
	}
	var list appsv1.DeploymentList
	if err := o.Client.List(ctx, &list, client.InNamespace(o.Namespace), client.MatchingLabels{labelSupervisor: api.LeaseName}); err != nil {
		return CatalogNamespaces{}, fmt.Errorf("looking for the Deployment of the supervisors: %w", err)
	}
	for i := range list.Items {
		found.Supervisors = containerSetting(&list.Items[i], FlagCatalogs, envCatalogs, defaultCatalogNamespace)
	}
	return found, nil
}

// containerSetting returns the value of a flag or of a variable in the containers of a Deployment, or else value. A flag
// precedes a variable.
func containerSetting(d *appsv1.Deployment, flag, env, value string) string {
	for i := range d.Spec.Template.Spec.Containers {
		c := &d.Spec.Template.Spec.Containers[i]
		if at := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == env && e.Value != "" }); at >= 0 {
			value = c.Env[at].Value
		}
		if set := flagValue(slices.Concat(c.Command, c.Args), flag); set != "" {
			value = set
		}
	}
	return value
}

// flagValue returns the last value of a flag in the arguments of a program; empty if it is not set.
func flagValue(args []string, flag string) string {
	value := ""
	for i, arg := range args {
		name, set, joined := strings.Cut(arg, "=")
		switch {
		case name != "--"+flag && name != "-"+flag:
		case joined:
			value = set
		case i+1 < len(args):
			value = args[i+1]
		}
	}
	return value
}
