package openshift

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/supervisor/operatorproxy"
	"github.com/chandlery/chandlery/test/openshiftobjects"
)

// cluster is a reader that returns a Proxy with a status, or an error.
type cluster struct {
	client.Reader

	status map[string]any
	err    error
}

func (c *cluster) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if c.err != nil {
		return c.err
	}
	return unstructured.SetNestedMap(obj.(*unstructured.Unstructured).Object, c.status, "status") //nolint:forcetypeassert // it is asked for one
}

// TestFound checks the states of a cluster, step by step.
func TestFound(t *testing.T) {
	proxy := []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "http://proxy.example.com"}, {Name: "NO_PROXY", Value: ".svc"}}
	status := map[string]any{"httpProxy": "http://proxy.example.com", "httpsProxy": "", "noProxy": ".svc"}
	notFound := apierrors.NewNotFound(schema.GroupResource{}, "cluster")
	c := &cluster{}
	p := NewProxies(c)
	for i, step := range []struct {
		reason  string
		outcome discovery.Outcome
		status  map[string]any
		err     error
		want    []corev1.EnvVar
		unknown bool
		changed bool
	}{
		{reason: "nobody takes what is not known for none", outcome: discovery.Unreachable, unknown: true},
		{reason: "nor what may not be read", outcome: discovery.Forbidden, unknown: true},
		{reason: "nor what cannot be read", outcome: discovery.Installed, err: errors.New("broken"), unknown: true},
		{reason: "no OpenShift, no proxies", outcome: discovery.NotInstalled, changed: true},
		{reason: "nothing new", outcome: discovery.NotInstalled},
		{reason: "the API appears, without a Proxy", outcome: discovery.Installed, err: notFound},
		{reason: "a Proxy appears; what is empty is no variable", outcome: discovery.Installed, status: status, want: proxy, changed: true},
		{reason: "what was known stays while nobody answers", outcome: discovery.Unreachable, want: proxy},
		{reason: "and while it cannot be read", outcome: discovery.Installed, err: errors.New("broken"), want: proxy},
		{reason: "it goes", outcome: discovery.Installed, err: notFound, changed: true},
		{reason: "it comes back", outcome: discovery.Installed, status: status, want: proxy, changed: true},
		{reason: "the API is not used any more", outcome: discovery.Skipped, changed: true},
	} {
		c.status, c.err = step.status, step.err
		p.Found(t.Context(), openshiftobjects.Checked(step.outcome))
		got, err := p.Env()
		_, unknown := errors.AsType[*operatorproxy.UnknownError](err)
		if diff := cmp.Diff(step.want, got); diff != "" || unknown != step.unknown {
			t.Errorf("%d: %s: error %v, -want, +got:\n%s", i, step.reason, err, diff)
		}
		changed := false
		select {
		case <-p.Changes():
			changed = true
		default:
		}
		if changed != step.changed {
			t.Errorf("%d: %s: told of a change: %v, want %v", i, step.reason, changed, step.changed)
		}
	}
}
