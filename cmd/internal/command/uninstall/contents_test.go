package uninstall

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// listed returns an object of a namespace. Its UID is its kind and name.
func listed(version, kind, name string, change func(*metav1.PartialObjectMetadata)) metav1.PartialObjectMetadata {
	o := metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(kind + " " + name)},
	}
	if change != nil {
		change(&o)
	}
	return o
}

func ours(o *metav1.PartialObjectMetadata) { o.Labels = map[string]string{labelPartOf: product} }

func ownedBy(uid types.UID) func(*metav1.PartialObjectMetadata) {
	return func(o *metav1.PartialObjectMetadata) {
		o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Owner", Name: "owner", UID: uid}}
	}
}

func tokenOf(account string) func(*metav1.PartialObjectMetadata) {
	return func(o *metav1.PartialObjectMetadata) {
		o.Annotations = map[string]string{corev1.ServiceAccountNameKey: account}
	}
}

// TestForeignObjects names the objects that the deletion of the namespace would take from users.
func TestForeignObjects(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		objects []metav1.PartialObjectMetadata
		want    []string
	}{
		"Kubernetes": {objects: []metav1.PartialObjectMetadata{
			listed("v1", "ConfigMap", "kube-root-ca.crt", nil), listed("v1", "ServiceAccount", "default", nil),
			listed("v1", "Secret", "default-token-x", tokenOf("default")),
		}},
		"OpenShift": {objects: []metav1.PartialObjectMetadata{
			listed("v1", "ConfigMap", "openshift-service-ca.crt", nil), listed("v1", "ServiceAccount", "builder", nil),
			listed("v1", "Secret", "builder-dockercfg-x", tokenOf("builder")), listed("rbac.authorization.k8s.io/v1", "RoleBinding", "system:image-pullers", nil),
		}},
		"Product": {objects: []metav1.PartialObjectMetadata{
			listed("apps/v1", "Deployment", supervisorName, ours), listed("coordination.k8s.io/v1", "Lease", supervisorName, nil),
			listed("coordination.k8s.io/v1", "Lease", packageServer, nil),
		}},
		"OwnedByProduct": {objects: []metav1.PartialObjectMetadata{
			listed("apps/v1", "Deployment", supervisorName, ours), listed("v1", "Service", supervisorName, ours),
			listed("apps/v1", "ReplicaSet", "a", ownedBy("Deployment "+supervisorName)), listed("v1", "Pod", "a-b", ownedBy("ReplicaSet a")),
			listed("discovery.k8s.io/v1", "EndpointSlice", "c", ownedBy("Service "+supervisorName)), listed("v1", "Endpoints", supervisorName, nil),
		}},
		"CopiedVersion": {objects: []metav1.PartialObjectMetadata{
			listed("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "lamp.v1", func(o *metav1.PartialObjectMetadata) {
				o.Labels = map[string]string{"olm.copiedFrom": "operators"}
			}),
			listed("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "torch.v1", nil),
		}, want: []string{"ClusterServiceVersion torch.v1"}},
		"Users": {objects: []metav1.PartialObjectMetadata{
			listed("v1", "ServiceAccount", "backup", nil), listed("v1", "Secret", "backup-token-x", tokenOf("backup")),
			listed("batch/v1", "CronJob", "backup", nil), listed("batch/v1", "Job", "backup-1", ownedBy("CronJob backup")), listed("v1", "Pod", "shell", nil),
			listed("rbac.authorization.k8s.io/v1", "Role", "backup", nil), listed("v1", "PersistentVolumeClaim", "data", nil),
			listed("example.com/v1", "Lamp", "quay", ownedBy("an owner without a namespace")), listed("coordination.k8s.io/v1", "Lease", "backup", nil),
			listed("v1", "Secret", "token", tokenOf("absent")), listed("v1", "Endpoints", "outside", nil),
		}, want: []string{
			"CronJob backup", "Endpoints outside", "Lamp quay", "Lease backup", "PersistentVolumeClaim data", "Pod shell", "Role backup",
			"Secret token", "ServiceAccount backup",
		}},
		"TwoGroups": {objects: []metav1.PartialObjectMetadata{
			listed("extensions/v1beta1", "Ingress", "shop", nil), listed("networking.k8s.io/v1", "Ingress", "shop", nil),
		}, want: []string{"Ingress shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, foreignObjects(tt.objects)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// served is a cluster whose discovery returns resources and an error.
type served struct {
	lists []*metav1.APIResourceList
	err   error
}

func (s served) ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error) {
	return s.lists, s.err
}

// TestContents lists each kind that can be listed and deleted, and names the groups that do not answer.
func TestContents(t *testing.T) {
	t.Parallel()
	all := metav1.Verbs{"get", "list", "delete"}
	core := &metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "pods", Kind: "Pod", Verbs: all},
		{Name: "events", Kind: "Event", Verbs: all},
		{Name: "pods/status", Kind: "Pod", Verbs: metav1.Verbs{"get"}},
		{Name: "configmaps", Kind: "ConfigMap", Verbs: metav1.Verbs{"list"}},
	}}
	wares := &metav1.APIResourceList{GroupVersion: "wares.example.com/v1", APIResources: []metav1.APIResource{{Name: "wares", Kind: "Ware", Verbs: all}}}
	failed := func(groups ...string) error {
		e := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{}}
		for _, group := range groups {
			e.Groups[schema.GroupVersion{Group: group, Version: "v1"}] = apierrors.NewServiceUnavailable("down")
		}
		return e
	}
	broken, resource := errors.New("broken"), schema.GroupResource{Group: "wares.example.com", Resource: "wares"}
	pod := []string{"Pod shell"}
	for name, tt := range map[string]struct {
		served served
		// list is the answer to a request for Wares.
		list error
		want Contents
		err  error
	}{
		"Pods":        {served: served{lists: []*metav1.APIResourceList{core}}, want: Contents{Objects: pod}},
		"Unserved":    {served: served{lists: []*metav1.APIResourceList{core}, err: failed("b.example.com", "a.example.com")}, want: Contents{pod, []string{"a.example.com/v1", "b.example.com/v1"}}},
		"Packages":    {served: served{lists: []*metav1.APIResourceList{core}, err: failed("packages.operators.coreos.com")}, want: Contents{Objects: pod}},
		"Unavailable": {served: served{lists: []*metav1.APIResourceList{core, wares}}, list: apierrors.NewServiceUnavailable("down"), want: Contents{pod, []string{"wares.example.com/v1"}}},
		"Deleted":     {served: served{lists: []*metav1.APIResourceList{core, wares}}, list: apierrors.NewNotFound(resource, ""), want: Contents{Objects: pod}},
		"Method":      {served: served{lists: []*metav1.APIResourceList{core, wares}}, list: apierrors.NewMethodNotSupported(resource, "list"), want: Contents{Objects: pod}},
		"List":        {served: served{lists: []*metav1.APIResourceList{wares}}, list: broken, err: broken},
		"Discovery":   {served: served{err: broken}, err: broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			meta := func(namespace, name string) metav1.ObjectMeta {
				return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)}
			}
			c := fake.NewClientBuilder().WithScheme(fixtures.Scheme(t)).WithObjects(
				&corev1.Pod{ObjectMeta: meta("home", "shell")}, &corev1.Event{ObjectMeta: meta("home", "shell")},
				&corev1.ConfigMap{ObjectMeta: meta("home", "view")}, &corev1.Pod{ObjectMeta: meta("shop", "shell")},
			).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, below client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if list.GetObjectKind().GroupVersionKind().Kind == "WareList" {
						return tt.list
					}
					return below.List(ctx, list, options...)
				},
			}).Build()
			r := inventoryReader{client: c, resources: tt.served, namespace: "home"}
			o := &Inventory{NamespaceOwned: true}
			if err := r.contents(t.Context(), o); !errors.Is(err, tt.err) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, o.Contents); tt.err == nil && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			foreign := &Inventory{}
			if err := r.contents(t.Context(), foreign); err != nil || foreign.Contents.Objects != nil {
				t.Errorf("a namespace that is never deleted was listed: %v, %v", foreign.Contents, err)
			}
		})
	}
}

// TestListOf reads all pages.
func TestListOf(t *testing.T) {
	t.Parallel()
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			o := client.ListOptions{}
			o.ApplyOptions(options)
			next := map[string]string{"": "b", "b": "c", "c": ""}[o.Continue]
			list.SetContinue(next)
			list.(*metav1.PartialObjectMetadataList).Items = []metav1.PartialObjectMetadata{listed("v1", "Pod", "before-"+next, nil)}
			return nil
		},
	})
	list, err := listOf(t.Context(), c, corev1.SchemeGroupVersion.WithKind("Pod"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list {
		names = append(names, list[i].Name)
	}
	if diff := cmp.Diff([]string{"before-b", "before-c", "before-"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
