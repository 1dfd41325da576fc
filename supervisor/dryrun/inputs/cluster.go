package inputs

import (
	"context"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
)

// Cluster reads objects and hosted catalogs.
type Cluster struct {
	reader client.Reader
	config *rest.Config
}

// NewCluster returns a Cluster. The scheme must contain the kinds of operators.coreos.com and pods.
func NewCluster(cfg *rest.Config, scheme *runtime.Scheme) (*Cluster, error) {
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reaching the API server at %s: %w", cfg.Host, err)
	}
	return &Cluster{reader: c, config: cfg}, nil
}

// Reader returns the reader of the objects of the cluster.
func (c *Cluster) Reader() client.Reader { return c.reader }

// objects reads the objects of a namespace, without CatalogSources.
func (c *Cluster) objects(ctx context.Context, namespace string) (*Objects, error) {
	o := &Objects{}
	var (
		subscriptions operatorsv1alpha1.SubscriptionList
		versions      operatorsv1alpha1.ClusterServiceVersionList
		plans         operatorsv1alpha1.InstallPlanList
		groups        operatorsv1.OperatorGroupList
	)
	for _, list := range []struct {
		plural string
		into   client.ObjectList
	}{
		{"subscriptions", &subscriptions},
		{"clusterserviceversions", &versions},
		{"installplans", &plans},
		{"operatorgroups", &groups},
	} {
		if err := c.list(ctx, list.plural, namespace, list.into); err != nil {
			return nil, err
		}
	}
	for i := range subscriptions.Items {
		if sub := &subscriptions.Items[i]; sub.DeletionTimestamp.IsZero() && sub.Spec != nil {
			o.Subscriptions = append(o.Subscriptions, sub)
		}
	}
	for i := range versions.Items {
		o.Versions = append(o.Versions, &versions.Items[i])
	}
	for i := range plans.Items {
		o.Plans = append(o.Plans, &plans.Items[i])
	}
	for i := range groups.Items {
		o.Groups = append(o.Groups, &groups.Items[i])
	}
	return o, nil
}

// Catalogs returns the CatalogSources of a namespace and of the global namespace, with notes on those that cannot be
// decoded.
func (c *Cluster) Catalogs(ctx context.Context, namespace, global string) (sources []*operatorsv1alpha1.CatalogSource, notes []string, err error) {
	o := &Objects{}
	err = c.catalogSources(ctx, o, namespace, global)
	return o.Catalogs, o.Notes, err
}

// Dial connects to a catalog where the supervisor connects to it; to one that the cluster runs through a port-forward.
// The caller ends the connection.
func (c *Cluster) Dial(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (conn *grpc.ClientConn, end func(), err error) {
	address, stop := source.Spec.Address, func() {}
	if _, problem := catalogs.SpecProblem(source); problem != "" {
		return nil, nil, fmt.Errorf("catalog %s/%s: %s", source.Namespace, source.Name, problem)
	}
	if catalogs.Hosted(source) {
		if address, _, stop, err = c.forwardReplica(ctx, source, ""); err != nil {
			return nil, nil, fmt.Errorf("catalog %s/%s: %w", source.Namespace, source.Name, err)
		}
	}
	security, err := c.security(ctx, source)
	if err != nil {
		stop()
		return nil, nil, err
	}
	if conn, err = dial(address, dialtls.NewCredentials(security)); err != nil {
		stop()
		return nil, nil, err
	}
	return conn, func() {
		_ = conn.Close() // everything has been read by then
		stop()
	}, nil
}

// security returns how the supervisor connects to a catalog at an address. The user may lack permission to read the
// Secrets that it names.
func (c *Cluster) security(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (dialtls.Security, error) {
	if catalogs.Hosted(source) {
		return dialtls.Security{}, nil
	}
	if settings, problem := dialtls.Parse(source.Annotations); c == nil || problem != nil || !settings.Enabled {
		return offline(source, settings, problem)
	}
	security, err := dialtls.Load(ctx, c.reader, source.Namespace, source.Annotations)
	if err != nil {
		return dialtls.Security{}, fmt.Errorf("catalog %s/%s: %w", source.Namespace, source.Name, err)
	}
	return security, nil
}

// offline returns the Security of a catalog without objects of a cluster.
func offline(source *operatorsv1alpha1.CatalogSource, settings dialtls.Settings, problem *dialtls.Error) (dialtls.Security, error) {
	if settings.Enabled && problem == nil {
		return dialtls.Security{}, fmt.Errorf("catalog %s/%s: its certificates are in the cluster, which is not read; set --catalog %s/%s=SOURCE",
			source.Namespace, source.Name, source.Namespace, source.Name)
	}
	return dialtls.Security{Settings: settings, Problem: problem}, nil
}

// lacks reports whether a namespace is known not to exist. The user may lack permission to read namespaces.
func (c *Cluster) lacks(ctx context.Context, namespace string) bool {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return apierrors.IsNotFound(c.reader.Get(ctx, client.ObjectKey{Name: namespace}, found))
}

// catalogSources reads the CatalogSources of a namespace and of the global namespace.
func (c *Cluster) catalogSources(ctx context.Context, o *Objects, namespace, global string) error {
	for _, where := range slices.Compact([]string{namespace, global}) {
		list := catalogs.NewList()
		if err := c.list(ctx, "catalogsources", where, list); err != nil {
			return err
		}
		for i := range list.Items {
			source, err := catalogs.Decode(&list.Items[i])
			if err != nil {
				o.Notes = append(o.Notes, fmt.Sprintf("left out: %v", err))
				continue
			}
			o.Catalogs = append(o.Catalogs, source)
		}
	}
	return nil
}

// list reads the objects of a namespace; of all if it is empty.
func (c *Cluster) list(ctx context.Context, plural, namespace string, into client.ObjectList, options ...client.ListOption) error {
	err := c.reader.List(ctx, into, append(options, client.InNamespace(namespace))...)
	where, remedy := "namespace "+namespace, ""
	if namespace == corev1.NamespaceAll {
		where = "all namespaces"
	}
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		remedy = fmt.Sprintf("; permission to list %s.operators.coreos.com in %s is missing", plural, where)
	}
	return fmt.Errorf("listing %s of %s: %w%s", plural, where, err, remedy)
}
