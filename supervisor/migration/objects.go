package migration

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
)

const (
	objectsKey = "objects.json.gz"
	// chunkSize is the maximum size of the content of one ConfigMap, in bytes. A ConfigMap may hold 1 MiB.
	chunkSize = 700 << 10
)

// recordedKinds returns the kinds whose objects are recorded: those that the controllers may replace, relabel or
// delete because they create them differently. Workloads of operators are not included, since a handback does
// not revert changes of operators.
func recordedKinds() []schema.GroupVersionKind {
	const rbac, admission = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
	return []schema.GroupVersionKind{
		{Version: "v1", Kind: "ServiceAccount"},
		{Version: "v1", Kind: "Service"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		{Group: rbac, Version: "v1", Kind: "Role"},
		{Group: rbac, Version: "v1", Kind: "RoleBinding"},
		{Group: rbac, Version: "v1", Kind: "ClusterRole"},
		{Group: rbac, Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: admission, Version: "v1", Kind: "ValidatingWebhookConfiguration"},
		{Group: admission, Version: "v1", Kind: "MutatingWebhookConfiguration"},
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: kindAPIService},
		{Version: "v1", Kind: "Pod"},
	}
}

// addedKinds returns the kinds of objects that a handback may delete or whose conditions it may remove, in addition to the
// recorded kinds.
func addedKinds() []schema.GroupVersionKind {
	const operators = "operators.coreos.com"
	return []schema.GroupVersionKind{
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: operators, Version: "v1alpha1", Kind: "InstallPlan"},
		{Group: operators, Version: "v1alpha1", Kind: "CatalogSource"},
		{Group: operators, Version: "v1alpha1", Kind: "Subscription"},
		{Group: operators, Version: "v1", Kind: "OperatorGroup"},
		{Group: operators, Version: "v1", Kind: "OLMConfig"},
	}
}

// markedKinds returns the kinds of objects that may have marks, in addition to the recorded kinds.
func markedKinds() []schema.GroupVersionKind {
	const operators = "operators.coreos.com"
	return []schema.GroupVersionKind{
		{Group: operators, Version: "v1alpha1", Kind: "ClusterServiceVersion"},
		{Group: operators, Version: "v2", Kind: "OperatorCondition"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "Secret"},
		{Version: "v1", Kind: "Namespace"},
	}
}

// isOfOLM reports whether OLM created an object and the controllers may replace it.
func isOfOLM(o *unstructured.Unstructured) bool {
	labels := o.GetLabels()
	if o.GetKind() == "Pod" {
		return ownerOf(o, "CatalogSource") != nil
	}
	switch {
	case o.GetDeletionTimestamp() != nil:
		return false
	case labels[api.LabelOwnerKind] == "ClusterServiceVersion", labels[api.LabelManaged] == "true":
		return true
	case ownerOf(o, "CatalogSource") != nil, ownerOf(o, "ClusterServiceVersion") != nil:
		return true
	case strings.HasPrefix(o.GetName(), "olm.og."), labels[api.LabelOwnerKind] == "OperatorGroup":
		return true
	}
	// OLM creates these bindings without labels: the permission of operators' API servers to delegate authentication
	// and authorization.
	return o.GetKind() == "RoleBinding" && o.GetNamespace() == "kube-system" && strings.HasSuffix(o.GetName(), "-service-auth-reader") ||
		o.GetKind() == "ClusterRoleBinding" && strings.HasSuffix(o.GetName(), "-service-system:auth-delegator")
}

func ownerOf(o metav1.Object, kind string) *metav1.OwnerReference {
	refs := o.GetOwnerReferences()
	i := slices.IndexFunc(refs, func(ref metav1.OwnerReference) bool { return ref.Kind == kind })
	if i < 0 {
		return nil
	}
	return &refs[i]
}

// readObjects reads the objects to record.
func readObjects(ctx context.Context, c client.Reader) ([]*unstructured.Unstructured, error) {
	all, err := listKinds(ctx, c, recordedKinds(), listAll)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool { return !isOfOLM(o) })
	for i := range all {
		all[i] = recordedForm(all[i])
	}
	return all, nil
}

// listFunc lists the objects of a kind.
type listFunc func(context.Context, client.Reader, schema.GroupVersionKind) ([]*unstructured.Unstructured, error)

// listKinds lists the objects of several kinds at the same time, and returns them in the order of the kinds. One error
// reports all missing permissions.
func listKinds(ctx context.Context, c client.Reader, kinds []schema.GroupVersionKind, list listFunc) ([]*unstructured.Unstructured, error) {
	lists, errs := make([][]*unstructured.Unstructured, len(kinds)), make([]error, len(kinds))
	var group errgroup.Group
	group.SetLimit(parallelRequests)
	for i, gvk := range kinds {
		group.Go(func() error {
			lists[i], errs[i] = list(ctx, c, gvk)
			return nil
		})
	}
	_ = group.Wait() // errs has the errors
	var missing missingPermissions
	for _, err := range errs {
		if missing.collect(err) != nil {
			return nil, err
		}
	}
	return slices.Concat(lists...), missing.err()
}

// listAll reads all objects of a kind; none if the cluster does not serve the kind.
func listAll(ctx context.Context, c client.Reader, gvk schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	const page = 500
	var (
		all   []*unstructured.Unstructured
		token string
	)
	for {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		err := c.List(ctx, list, client.Limit(page), client.Continue(token))
		if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing every %s: %w", gvk.Kind, err)
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
		if token = list.GetContinue(); token == "" {
			return all, nil
		}
	}
}

// listMetadata reads only the metadata of all objects of a kind. Some objects are large, and the content of Secrets
// is not needed.
func listMetadata(ctx context.Context, c client.Reader, gvk schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
	err := c.List(ctx, list)
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing every %s: %w", gvk.Kind, err)
	}
	all := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(gvk)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list.Items[i])
		if err != nil {
			return nil, fmt.Errorf("converting %s %s/%s: %w", gvk.Kind, list.Items[i].Namespace, list.Items[i].Name, err)
		}
		all = append(all, &unstructured.Unstructured{Object: content})
	}
	return all, nil
}

// recordedForm returns the recorded form of an object, without the fields that only the API server sets.
func recordedForm(o *unstructured.Unstructured) *unstructured.Unstructured {
	i := o.DeepCopy()
	delete(i.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(i.Object, "metadata", field)
	}
	if o.GetKind() == "Pod" {
		// The restored pod gets another node and another token.
		unstructured.RemoveNestedField(i.Object, "spec", "nodeName")
		for _, label := range []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion} {
			unstructured.RemoveNestedField(i.Object, "metadata", "labels", label)
		}
		dropTokens(i)
	}
	return i
}

// dropTokens removes from a pod the volume with its token, which admission adds to each.
func dropTokens(pod *unstructured.Unstructured) {
	const prefix = "kube-api-access-"
	without := func(list []any) []any {
		return slices.DeleteFunc(list, func(e any) bool {
			m, _ := e.(map[string]any)
			name, _ := m["name"].(string)
			return strings.HasPrefix(name, prefix)
		})
	}
	if volumes, found, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes"); found {
		_ = unstructured.SetNestedSlice(pod.Object, without(volumes), "spec", "volumes")
	}
	for _, kind := range []string{"containers", "initContainers"} {
		containers, found, _ := unstructured.NestedSlice(pod.Object, "spec", kind)
		if !found {
			continue
		}
		for _, c := range containers {
			container, _ := c.(map[string]any)
			if mounts, found, _ := unstructured.NestedSlice(container, "volumeMounts"); found {
				_ = unstructured.SetNestedSlice(container, without(mounts), "volumeMounts")
			}
		}
		_ = unstructured.SetNestedSlice(pod.Object, containers, "spec", kind)
	}
}

// saveObjects records objects, and returns the number of ConfigMaps.
func (r *Records) saveObjects(ctx context.Context, objects []*unstructured.Unstructured) (int, error) {
	chunks, err := pack(objects, chunkSize)
	if err != nil {
		return 0, err
	}
	for i, chunk := range chunks {
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: chunkName(i), Labels: map[string]string{api.LabelRecord: "images"}},
			BinaryData: map[string][]byte{objectsKey: chunk},
		}
		err := apply.Create(ctx, r.client, cm, fieldOwner)
		if apierrors.IsAlreadyExists(err) {
			// This ConfigMap is from an interrupted attempt, and is unused until the record names it. The
			// supervisor's account may patch ConfigMaps, and not update them.
			before := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: cm.Name}}
			err = apply.Patch(ctx, r.client, cm, client.MergeFrom(before), fieldOwner)
		}
		if err != nil {
			return 0, fmt.Errorf("recording the objects of OLM: %w", err)
		}
	}
	return len(chunks), nil
}

func chunkName(i int) string { return RecordName + "-" + strconv.Itoa(i) }

// chunkNumber returns the number in a name from chunkName; -1 for another name.
func chunkNumber(name string) int {
	number, found := strings.CutPrefix(name, RecordName+"-")
	i, err := strconv.Atoi(number)
	if !found || err != nil {
		return -1
	}
	return i
}

// missingChunks returns the names of the missing ConfigMaps of the record.
func (r *Records) missingChunks(ctx context.Context, record *Record) ([]string, error) {
	var names []string
	for i := range record.Chunks {
		err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: chunkName(i)}, &corev1.ConfigMap{})
		switch {
		case apierrors.IsNotFound(err):
			names = append(names, chunkName(i))
		case err != nil:
			return nil, fmt.Errorf("reading the recorded objects of OLM: %w", err)
		}
	}
	return names, nil
}

// describeMissing describes the effect of missing ConfigMaps of the record.
func describeMissing(namespace string, names []string) []string {
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("ConfigMap %s in namespace %s, with recorded objects of OLM, is missing: restore it from a backup if there is one; without it, handing back starts OLM, removes our labels and deletes the objects that OLM does not create, but cannot restore the objects in that record, which OLM must recreate",
		strings.Join(names, ", "), namespace)}
}

// loadObjects reads the recorded objects, as far as they exist.
func (r *Records) loadObjects(ctx context.Context, chunks int) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for i := range chunks {
		cm := &corev1.ConfigMap{}
		if err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: chunkName(i)}, cm); apierrors.IsNotFound(err) {
			continue // missingChunks reports it
		} else if err != nil {
			return nil, fmt.Errorf("reading the recorded objects of OLM: %w", err)
		}
		objects, err := decompress(cm.BinaryData[objectsKey])
		if err != nil {
			return nil, fmt.Errorf("reading the recorded objects of OLM, ConfigMap %s/%s: %w", cm.Namespace, cm.Name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// pack splits objects into chunks of at most limit bytes, if possible. Each chunk has whole objects.
func pack(objects []*unstructured.Unstructured, limit int) ([][]byte, error) {
	var (
		chunks [][]byte
		batch  []*unstructured.Unstructured
	)
	for begin := 0; begin < len(objects); {
		// A search by halving finds the largest batch that fits: few clusters need two.
		batch = objects[begin:]
		for {
			chunk, err := compress(batch)
			if err != nil {
				return nil, err
			}
			if len(chunk) <= limit || len(batch) == 1 {
				chunks = append(chunks, chunk)
				break
			}
			batch = batch[:(len(batch)+1)/2]
		}
		begin += len(batch)
	}
	return chunks, nil
}

func compress(batch []*unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	if err := json.NewEncoder(writer).Encode(batch); err != nil {
		return nil, fmt.Errorf("encoding objects: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compressing objects: %w", err)
	}
	return out.Bytes(), nil
}

func decompress(chunk []byte) ([]*unstructured.Unstructured, error) {
	reader, err := gzip.NewReader(bytes.NewReader(chunk))
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	var objects []*unstructured.Unstructured
	if err := json.Unmarshal(text, &objects); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	return objects, nil
}
