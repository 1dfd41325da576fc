package supportbundle

import (
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/cmd/internal/redact"
	"github.com/chandlery/chandlery/supervisor/api/scheme"
	"github.com/chandlery/chandlery/supervisor/explain"
)

func named(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
}

func clusterState() *explain.ClusterState {
	operator := appsv1.Deployment{ObjectMeta: named("shop", "lamp", map[string]string{"olm.owner": "lamp.v1"})}
	operator.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "lamp"}}
	return &explain.ClusterState{
		CatalogSources: []operatorsv1alpha1.CatalogSource{{ObjectMeta: named("olm", "wares", nil)}},
		Subscriptions:  []operatorsv1alpha1.Subscription{{ObjectMeta: named("shop", "my-lamp", nil)}},
		Deployments:    []appsv1.Deployment{operator, {ObjectMeta: named("other", "web", nil)}},
		Pods: []corev1.Pod{
			{ObjectMeta: named("shop", "lamp-1", map[string]string{"app": "lamp"})},
			{ObjectMeta: named("shop", "customer", map[string]string{"app": "web"})},
			{ObjectMeta: named("olm", "wares-1", map[string]string{"olm.catalogSource": "wares"})},
			{ObjectMeta: named("olm", "chandlery-1", map[string]string{"app.kubernetes.io/name": "chandlery-supervisor"})},
			{ObjectMeta: named("other", "web-1", map[string]string{"app": "lamp"})},
		},
		Nodes: []corev1.Node{{ObjectMeta: named("", "node-1", nil)}},
	}
}

func TestLogsOfInterest(t *testing.T) {
	t.Parallel()
	o := clusterState()
	var got []string
	for i := range o.Pods {
		if ofInterest(o, &o.Pods[i]) {
			got = append(got, o.Pods[i].Name)
		}
	}
	if text := strings.Join(got, " "); text != "lamp-1 wares-1 chandlery-1" {
		t.Errorf("the logs of %s are read", text)
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	kinds, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	c := contents{room: 1 << 20}
	for _, object := range objectsOf(clusterState()) {
		if err := c.addObject(object, kinds, redact.Policy{}); err != nil {
			t.Fatal(err)
		}
	}
	var paths []string
	for _, f := range c.files {
		paths = append(paths, f.path)
	}
	text := strings.Join(paths, "\n")
	for path, want := range map[string]bool{
		"objects/olm/catalogsource/wares.yaml": true, "objects/shop/deployment/lamp.yaml": true, "objects/shop/pod/customer.yaml": true,
		"objects/_cluster/node/node-1.yaml": true, "objects/other/": false,
	} {
		if got := strings.Contains(text, path); got != want {
			t.Errorf("%s is there: %v, want %v:\n%s", path, got, want, text)
		}
	}
	if content := string(c.files[0].content); !strings.HasPrefix(content, "apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\n") {
		t.Errorf("an object cannot be applied again:\n%s", content)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Date(2026, 3, 5, 9, 0, 0, 0, time.UTC))
	newer, older := corev1.Event{LastTimestamp: at, Message: "password=hush"}, corev1.Event{EventTime: metav1.NewMicroTime(at.Add(-time.Hour)), Message: "first"}
	c := contents{room: 1 << 20}
	if err := c.addEvents("shop", []corev1.Event{newer, older}); err != nil {
		t.Fatal(err)
	}
	text := string(c.files[0].content)
	if first, second := strings.Index(text, "first"), strings.Index(text, "password=[redacted]"); first < 0 || second < first {
		t.Error(text)
	}
	if err := c.addEvents("home", nil); err != nil || len(c.files) != 1 {
		t.Errorf("there is a file without events: %+v, %v", c.files, err)
	}
}
