package operatorsdk

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/pause"
)

const (
	// Channel is the channel in the catalogs that operator-sdk renders.
	Channel = "operator-sdk-run-bundle"
	// Timeout is the default limit of each command.
	Timeout = 2 * time.Minute

	// groupName is the OperatorGroup that operator-sdk creates in a namespace without one.
	groupName = "operator-sdk-og"
	// Intervals between two reads, for InstallPlans and servers, and for ClusterServiceVersions.
	polling        = 200 * time.Millisecond
	versionPolling = time.Second

	annotationPrefix = "operators.operatorframework.io/"
)

// Operator is an operator that operator-sdk runs in a namespace. It is a package of the catalog that operator-sdk makes.
type Operator struct {
	Client             client.Client
	Namespace, Package string
}

// Server is a pod that serves a catalog.
type Server struct {
	// Address is the address of the catalog.
	Address string
	// Pod is the name of the pod.
	Pod string
	// Bundles are the images of all bundles in the catalog.
	Bundles []string
}

func (o Operator) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: o.Namespace, Name: name}
}

func (o Operator) catalog() string { return o.Package + "-catalog" }

// CreateCatalog creates the CatalogSource, which has no source type yet. An empty secret is listed too.
func (o Operator) CreateCatalog(ctx context.Context, secret string) (*operatorsv1alpha1.CatalogSource, error) {
	source := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.catalog()},
		Spec: operatorsv1alpha1.CatalogSourceSpec{
			DisplayName: o.Package, Publisher: "operator-sdk", Secrets: []string{secret},
			GrpcPodConfig: &operatorsv1alpha1.GrpcPodConfig{SecurityContextConfig: operatorsv1alpha1.Legacy},
		},
	}
	if err := o.Client.Create(ctx, source); err != nil {
		return nil, fmt.Errorf("creating the CatalogSource: %w", err)
	}
	return source, nil
}

// SetAddress updates the CatalogSource to the address of a server. It returns the name of the former server.
func (o Operator) SetAddress(ctx context.Context, server Server) (former string, err error) {
	type item struct {
		ImageTag string `json:"imageTag"`
		Mode     string `json:"mode"`
	}
	items := []item{}
	for _, image := range server.Bundles {
		items = append(items, item{image, ""})
	}
	injected, err := json.Marshal(items)
	if err != nil {
		return "", fmt.Errorf("encoding the bundles: %w", err)
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		source := &operatorsv1alpha1.CatalogSource{}
		if err := o.Client.Get(ctx, o.key(o.catalog()), source); err != nil {
			return err //nolint:wrapcheck // the retry compares it
		}
		former = source.Annotations[annotationPrefix+"registry-pod-name"]
		source.Spec.SourceType, source.Spec.Address, source.Spec.Image = operatorsv1alpha1.SourceTypeGrpc, server.Address, ""
		metav1.SetMetaDataAnnotation(&source.ObjectMeta, annotationPrefix+"index-image", opmImage)
		metav1.SetMetaDataAnnotation(&source.ObjectMeta, annotationPrefix+"injected-bundles", string(injected))
		metav1.SetMetaDataAnnotation(&source.ObjectMeta, annotationPrefix+"registry-pod-name", server.Pod)
		return o.Client.Update(ctx, source) //nolint:wrapcheck // the retry compares it
	})
	if err != nil {
		return "", fmt.Errorf("writing the address of the CatalogSource: %w", err)
	}
	return former, nil
}

// EnsureGroup creates an OperatorGroup for all namespaces unless the namespace has one.
func (o Operator) EnsureGroup(ctx context.Context) error {
	groups := &operatorsv1.OperatorGroupList{}
	if err := o.Client.List(ctx, groups, client.InNamespace(o.Namespace)); err != nil {
		return fmt.Errorf("listing OperatorGroups: %w", err)
	}
	switch len(groups.Items) {
	case 0:
		if err := o.Client.Create(ctx, &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: groupName}}); err != nil {
			return fmt.Errorf("creating the OperatorGroup: %w", err)
		}
		return nil
	case 1:
		return nil
	default:
		return fmt.Errorf("namespace %s has %d OperatorGroups, want at most one", o.Namespace, len(groups.Items))
	}
}

// Subscribe creates a Subscription that starts with a version and waits for approval.
func (o Operator) Subscribe(ctx context.Context, channel, version string) (*operatorsv1alpha1.Subscription, error) {
	sub := &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: strings.ReplaceAll(version, ".", "-") + "-sub"},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: o.Package, Channel: channel, StartingCSV: version, CatalogSource: o.catalog(), CatalogSourceNamespace: o.Namespace,
			InstallPlanApproval: operatorsv1alpha1.ApprovalManual,
		},
	}
	if err := o.Client.Create(ctx, sub); err != nil {
		return nil, fmt.Errorf("creating the Subscription: %w", err)
	}
	return sub, nil
}

// Approve waits until a Subscription names another InstallPlan than the former one, approves it and returns its name.
func (o Operator) Approve(ctx context.Context, sub *operatorsv1alpha1.Subscription, former string) (string, error) {
	name := ""
	err := pause.Until(ctx, polling, func() string {
		current := &operatorsv1alpha1.Subscription{}
		if err := o.Client.Get(ctx, client.ObjectKeyFromObject(sub), current); err != nil {
			return err.Error()
		}
		if ref := current.Status.InstallPlanRef; ref == nil || ref.Name == former {
			return fmt.Sprintf("the Subscription has no new InstallPlan: state %q, conditions %+v", current.Status.State, current.Status.Conditions)
		}
		name = current.Status.InstallPlanRef.Name
		return ""
	})
	if err != nil {
		return "", fmt.Errorf("waiting for an InstallPlan: %w", err)
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		plan := &operatorsv1alpha1.InstallPlan{}
		if err := o.Client.Get(ctx, o.key(name), plan); err != nil {
			return err //nolint:wrapcheck // the retry compares it
		}
		plan.Spec.Approved = true
		return o.Client.Update(ctx, plan) //nolint:wrapcheck // the retry compares it
	})
	if err != nil {
		return "", fmt.Errorf("approving InstallPlan %s: %w", name, err)
	}
	return name, nil
}

// AwaitSucceeded waits until a version has succeeded. A version that is Failed is an error at once.
func (o Operator) AwaitSucceeded(ctx context.Context, version string) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	err := pause.Until(ctx, versionPolling, func() string {
		current := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := o.Client.Get(ctx, o.key(version), current); err != nil {
			return err.Error()
		}
		csv = current
		switch csv.Status.Phase {
		case operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVPhaseFailed:
			return ""
		default:
			return fmt.Sprintf("it is %s: %s", csv.Status.Phase, csv.Status.Message)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for ClusterServiceVersion %s: %w", version, err)
	}
	if csv.Status.Phase == operatorsv1alpha1.CSVPhaseFailed {
		return nil, fmt.Errorf("ClusterServiceVersion %s is Failed: %s", version, csv.Status.Message)
	}
	return csv, nil
}
