package catalogs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// decoded decodes a CatalogSource with the API's Go type and returns the recovered panic, if any.
func decoded(text string) (panicked any) {
	defer func() { panicked = recover() }()
	_ = json.Unmarshal([]byte(text), &operatorsv1alpha1.CatalogSource{})
	return nil
}

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		strategy string
		panics   bool // the API's own decoder
		interval time.Duration
	}{
		{strategy: `{}`, panics: true},
		{strategy: `{"registryPoll":null}`, panics: true},
		{strategy: `{"registryPoll":{}}`, interval: 15 * time.Minute},
		{strategy: `{"registryPoll":{"interval":"nonsense"}}`, interval: 15 * time.Minute},
		{strategy: `{"registryPoll":{"interval":"1m"}}`, interval: time.Minute},
	} {
		t.Run(tt.strategy, func(t *testing.T) {
			text := fmt.Sprintf(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"CatalogSource","metadata":{"namespace":"olm","name":"shop"},"spec":{"sourceType":"grpc","address":"shop:50051","updateStrategy":%s}}`, tt.strategy)
			// Once the decoder no longer panics, NewObject can return the Go type.
			if got := decoded(text); (got != nil) != tt.panics {
				t.Errorf("the API's decoder panics with %v, want a panic: %v", got, tt.panics)
			}
			u := NewObject()
			if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
				t.Fatal(err)
			}
			source, err := Decode(u)
			if err != nil {
				t.Fatal(err)
			}
			if source.Spec.Address != "shop:50051" || source.Name != "shop" {
				t.Errorf("decoded %+v", source.Spec)
			}
			if tt.interval == 0 {
				if source.Spec.UpdateStrategy != nil {
					t.Errorf("update strategy %+v, want none", source.Spec.UpdateStrategy)
				}
				return
			}
			if got := source.Spec.UpdateStrategy.Interval.Duration; got != tt.interval {
				t.Errorf("interval %s, want %s", got, tt.interval)
			}
			if _, found, _ := unstructured.NestedMap(u.Object, "spec", "updateStrategy"); !found {
				t.Error("decoding changed the object")
			}
		})
	}
}

func TestDecodeErrors(t *testing.T) {
	u := NewObject()
	u.SetNamespace("olm")
	u.SetName("shop")
	u.Object["spec"] = "nonsense"
	if _, err := Decode(u); err == nil || !strings.Contains(err.Error(), "decoding CatalogSource olm/shop") {
		t.Errorf("error %v does not name the object", err)
	}
}

func TestSpecProblem(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, tt := range []struct {
		name string
		spec operatorsv1alpha1.CatalogSourceSpec
		want string
	}{
		{spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "shop:50051"}},
		{spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "i"}},
		{spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "i", Address: "a"}},
		{spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "configmap", ConfigMap: "c"}},
		{spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "internal", ConfigMap: "c"}},
		{spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc"}, want: "image and address unset: at least one must be set for sourcetype: grpc"},
		{spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "internal"}, want: "configmap name unset: must be set for sourcetype: internal"},
		{spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "configmap"}, want: "configmap name unset: must be set for sourcetype: configmap"},
		{spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "odd"}, want: "unknown sourcetype: odd"},
		{name: "with.dots", spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "i"}},
		{name: "with.dots", spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "configmap", ConfigMap: "c"}, want: "metadata.name with.dots cannot be used: its Service would be called with.dots"},
		{name: "1st", spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "i"}, want: "make a CatalogSource with another name"},
		{name: "1st", spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "a:1"}},
		{spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "[::1]:50051"}},
		{spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "dns:///shop:50051"}},
		{spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "unix:///run/shop"}, want: `spec.address "unix:///run/shop" cannot be dialled`},
		{spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "shop"}, want: `spec.address "shop" cannot be dialled; write it as host:port without scheme, such as shop.olm.svc:50051`},
		{spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "http://shop:50051"}, want: `spec.address "http://shop:50051" cannot be dialled`},
		{spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "grpc://shop"}, want: `spec.address "grpc://shop" cannot be dialled`},
		{spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "shop:"}, want: `spec.address "shop:" cannot be dialled`},
		{name: long, spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "i"}, want: "must be no more than 63"},
	} {
		source := &operatorsv1alpha1.CatalogSource{Spec: tt.spec}
		source.Name = cmp.Or(tt.name, "shop")
		reason, message := SpecProblem(source)
		if (reason == operatorsv1alpha1.CatalogSourceSpecInvalidError) != (tt.want != "") || (message == "") != (tt.want == "") || !strings.Contains(message, tt.want) {
			t.Errorf("SpecProblem(%s, %+v) = %q, %q; want %q", source.Name, tt.spec, reason, message, tt.want)
		}
	}
}
