package informer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/informer"
)

const (
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
	mediaJSON     = "application/json"
)

// listed returns a client of an API server that sends the same list to every request.
func listed(t *testing.T, media string, list kruntime.Object) client.Client {
	t.Helper()
	var body bytes.Buffer
	encode := json.NewEncoder(&body).Encode
	if media == mediaProtobuf {
		encode = func(o any) error {
			return protobuf.NewSerializer(known(t), known(t)).Encode(o.(kruntime.Object), &body)
		}
	}
	if err := encode(list); err != nil {
		t.Fatal(err)
	}
	cfg := &rest.Config{Host: "https://cluster.example"}
	cfg.Wrap(func(http.RoundTripper) http.RoundTripper {
		return reply{media: media, body: func() io.Reader { return bytes.NewReader(body.Bytes()) }}
	})
	if err := informer.ReduceReplies(cfg); err != nil {
		t.Fatal(err)
	}
	mapper := apimeta.NewDefaultRESTMapper(nil)
	for _, gvk := range known(t).PrioritizedVersionsAllGroups() {
		for kind := range known(t).KnownTypes(gvk) {
			mapper.Add(gvk.WithKind(kind), apimeta.RESTScopeNamespace)
		}
	}
	c, err := client.New(cfg, client.Options{Scheme: known(t), Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// packedDeployment returns a Deployment whose elements take 2 bytes each in its encoding, and 24 times as much
// when they are decoded.
func packedDeployment(name string, elements int) appsv1.Deployment {
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, elements)},
	}}
	return d
}

// TestReducedLists lists a small and a large object of kinds that tenants create.
func TestReducedLists(t *testing.T) {
	page := metav1.ListMeta{ResourceVersion: "7", Continue: "next"}
	small, big := metav1.ObjectMeta{Name: "small", Labels: many("a", 1<<10)}, metav1.ObjectMeta{Name: "big", Labels: many("a", large)}
	about := metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: operatorsv1alpha1.SubscriptionKind}
	whole := &operatorsv1alpha1.SubscriptionSpec{Package: "lamp", Config: &operatorsv1alpha1.SubscriptionConfig{Env: []corev1.EnvVar{{Name: "A", Value: text(large)}}}}
	metadata := metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}
	services := &metav1.PartialObjectMetadataList{}
	services.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceList"))
	for name, tt := range map[string]struct {
		media string
		sent  kruntime.Object
		list  client.ObjectList
	}{
		"Deployments": {mediaProtobuf, &appsv1.DeploymentList{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}, ListMeta: page,
			Items: []appsv1.Deployment{{ObjectMeta: small}, packedDeployment("big", 100_000)},
		}, &appsv1.DeploymentList{}},
		"Subscriptions": {mediaJSON, &operatorsv1alpha1.SubscriptionList{
			TypeMeta: metav1.TypeMeta{APIVersion: about.APIVersion, Kind: "SubscriptionList"}, ListMeta: page,
			Items: []operatorsv1alpha1.Subscription{
				{TypeMeta: about, ObjectMeta: small, Spec: &operatorsv1alpha1.SubscriptionSpec{Package: "lamp"}},
				{TypeMeta: about, ObjectMeta: metav1.ObjectMeta{Name: "big"}, Spec: whole},
			},
		}, &operatorsv1alpha1.SubscriptionList{}},
		"Metadata": {mediaProtobuf, &metav1.PartialObjectMetadataList{
			TypeMeta: metadata, ListMeta: page,
			Items: []metav1.PartialObjectMetadata{{ObjectMeta: small}, {ObjectMeta: big}},
		}, services},
		"MetadataInJSON": {mediaJSON, &metav1.PartialObjectMetadataList{
			TypeMeta: metadata, ListMeta: page,
			Items: []metav1.PartialObjectMetadata{
				{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: small},
				{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: big},
			},
		}, services.DeepCopy()},
	} {
		t.Run(name, func(t *testing.T) {
			c := listed(t, tt.media, tt.sent)
			plain, _ := tt.list.DeepCopyObject().(client.ObjectList)
			for list, reduces := range map[client.ObjectList]bool{tt.list: true, plain: false} {
				reader := c
				if reduces {
					reader = informer.ReducedLists(c)
				}
				if err := reader.List(t.Context(), list); err != nil {
					t.Fatal(err)
				}
				items, err := apimeta.ExtractList(list)
				if err != nil {
					t.Fatal(err)
				}
				if len(items) != 2 || list.GetContinue() != "next" || list.GetResourceVersion() != "7" {
					t.Fatalf("%d items of a page at %s that continues at %q", len(items), list.GetResourceVersion(), list.GetContinue())
				}
				for i, want := range []string{"small", "big"} {
					o, _ := items[i].(metav1.Object)
					if o.GetName() != want || informer.Trimmed(o) != (reduces && want == "big") {
						t.Errorf("item %d is %s, trimmed %t, with reduced lists %t", i, o.GetName(), informer.Trimmed(o), reduces)
					}
				}
			}
		})
	}
}

// TestReducedListsDecodeOneAtATime lists 16 Deployments with as many empty elements as an API server stores.
// Decoded whole, each takes 39 MB.
func TestReducedListsDecodeOneAtATime(t *testing.T) {
	const most = 200 << 20
	c := listed(t, mediaProtobuf, &appsv1.DeploymentList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"},
		Items:    slices.Repeat([]appsv1.Deployment{packedDeployment("o", 740_000)}, 16),
	})
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	before := live()
	var list appsv1.DeploymentList
	if got := peak(func() {
		if err := informer.ReducedLists(c).List(t.Context(), &list); err != nil {
			t.Error(err)
		}
	}); got > before+most {
		t.Errorf("the list took %d MiB, at most %d are allowed", (got-before)>>20, most>>20)
	}
	if len(list.Items) != 16 {
		t.Errorf("%d Deployments, want 16", len(list.Items))
	}
}

// peak returns the largest number of bytes of the heap that were in use while do ran.
func peak(do func()) (most uint64) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		often := time.NewTicker(time.Millisecond)
		defer often.Stop()
		for {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			select {
			case <-done:
				return
			case <-often.C:
			}
		}
	}()
	do()
	close(done)
	<-stopped
	return most
}

// TestInformerReducesLists uses an API server that does not stream lists. The large object is reduced before the
// informer receives it.
func TestInformerReducesLists(t *testing.T) {
	c := listed(t, mediaProtobuf, &appsv1.DeploymentList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}, Items: []appsv1.Deployment{packedDeployment("big", 100_000)},
	})
	read := make(chan *appsv1.DeploymentList, 1)
	from := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (kruntime.Object, error) {
			var list appsv1.DeploymentList
			err := c.List(ctx, &list)
			select {
			case read <- list.DeepCopy():
			default: // it was read before
			}
			return &list, err
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil {
				return nil, errors.New("the server does not stream lists")
			}
			return watch.NewFake(), nil
		},
	}
	i := informer.New(from, &appsv1.Deployment{}, 0, nil)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); i.RunWithContext(ctx) }()
	list := <-read
	stop()
	<-ended
	if len(list.Items) != 1 || !informer.Trimmed(&list.Items[0]) {
		t.Errorf("the informer got %d Deployments, the first with %d bytes", len(list.Items), list.Items[0].Size())
	}
}

// TestReducedListsRefuse reads replies that are no lists, or end too early.
func TestReducedListsRefuse(t *testing.T) {
	var whole bytes.Buffer
	list := &appsv1.DeploymentList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}, Items: []appsv1.Deployment{packedDeployment("o", 20_000)}}
	if err := protobuf.NewSerializer(known(t), known(t)).Encode(list, &whole); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ media, body, want string }{
		"NoProtobuf":     {mediaProtobuf, "{}", "the response is not a list in protobuf"},
		"CutInItem":      {mediaProtobuf, whole.String()[:whole.Len()/2], "unexpected EOF"},
		"OtherField":     {mediaProtobuf, "k8s\x00\x08\x01", "the response is not a list in protobuf"},
		"HugeType":       {mediaProtobuf, "k8s\x00\x0a\xff\xff\xff\x7f", "at most 65536 are read"},
		"HugeItem":       {mediaProtobuf, "k8s\x00\x12\xff\xff\xff\x7f\x12\xff\xff\xff\x70", "at most 16777216 are read"},
		"NoObject":       {mediaJSON, "[]", "unexpected token [, want {"},
		"NoArray":        {mediaJSON, `{"items":{}}`, "items is {, not an array"},
		"CutJSON":        {mediaJSON, `{"items":[{"a":`, "EOF"},
		"EmptyReply":     {mediaJSON, "", "EOF"},
		"EmptyProtobuf":  {mediaProtobuf, "", "EOF"},
		"NullItems":      {mediaJSON, `{"kind":"DeploymentList","items":null,"metadata":{}}`, ""},
		"NoItems":        {mediaJSON, `{"kind":"DeploymentList","items":[],"metadata":{}}`, ""},
		"WholeProtobuf":  {mediaProtobuf, whole.String(), ""},
		"ItemsAreNumber": {mediaJSON, `{"items":[1,2]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := &rest.Config{Host: "https://cluster.example"}
			cfg.Wrap(func(http.RoundTripper) http.RoundTripper {
				return reply{media: tt.media, body: func() io.Reader { return strings.NewReader(tt.body) }}
			})
			read, err := informer.ReadReduced(t.Context(), cfg, "/apis/apps/v1/deployments")
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%d bytes and error %v, want %q", len(read), err, tt.want)
			}
		})
	}
}
