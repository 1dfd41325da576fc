package operatorproxy

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func env(pairs ...string) []corev1.EnvVar {
	var all []corev1.EnvVar
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
	}
	return all
}

func TestParse(t *testing.T) {
	t.Parallel()
	const web = "http://web.example:3128"
	for name, tt := range map[string]struct {
		data  map[string]string
		want  []corev1.EnvVar
		fails string
	}{
		"no keys":         {},
		"all":             {data: map[string]string{"httpProxy": web, "httpsProxy": "socks5://u:p@guest", "noProxy": "a,.b"}, want: env("HTTP_PROXY", web, "HTTPS_PROXY", "socks5://u:p@guest", "NO_PROXY", "a,.b,10.96.0.1,.svc")},
		"one":             {data: map[string]string{"httpsProxy": web + "\n", "httpProxy": ""}, want: env("HTTPS_PROXY", web, "NO_PROXY", "10.96.0.1,.svc")},
		"lines":           {data: map[string]string{"httpProxy": web, "noProxy": "a\n.svc , b\n"}, want: env("HTTP_PROXY", web, "NO_PROXY", "a,.svc,b,10.96.0.1")},
		"exceptions only": {data: map[string]string{"noProxy": "a"}},
		"an unknown key":  {data: map[string]string{"HTTP_PROXY": web}, fails: "unknown key HTTP_PROXY; use httpProxy, httpsProxy and noProxy"},
		"no scheme":       {data: map[string]string{"httpProxy": "web.example:3128"}, fails: "key httpProxy is no URL of a proxy; write it as http://proxy.example.com:3128"},
		"no URL":          {data: map[string]string{"httpsProxy": "http://%"}, fails: "key httpsProxy is no URL of a proxy"},
		"too long":        {data: map[string]string{"noProxy": strings.Repeat("a,", 9000)}, fails: "key noProxy has 18000 bytes; write at most 16384"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(tt.data, []string{"10.96.0.1", "", ".svc"})
			if (tt.fails == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Fatalf("error %v, want %q", err, tt.fails)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func TestParseName(t *testing.T) {
	t.Parallel()
	if key, err := ParseName("home/proxy"); err != nil || key != (types.NamespacedName{Namespace: "home", Name: "proxy"}) {
		t.Errorf("got %v, %v", key, err)
	}
	for _, value := range []string{"proxy", "/proxy", "home/", "home/a/b", "Home/a"} {
		if _, err := ParseName(value); err == nil || !strings.Contains(err.Error(), "--operator-proxy is") {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// TestCheck checks the states of a ConfigMap, step by step.
func TestCheck(t *testing.T) {
	var broken error
	reader := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if broken != nil {
				return broken
			}
			return c.Get(ctx, key, obj, opts...) //nolint:wrapcheck // as it is
		},
	}).Build()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "proxy"}}
	c := NewConfigMap(reader, client.ObjectKeyFromObject(object), ".svc")
	write := func(data map[string]string) func(context.Context) error {
		return func(ctx context.Context) error {
			object.Data = data
			if object.ResourceVersion == "" {
				return reader.Create(ctx, object) //nolint:wrapcheck // The test fails with it.
			}
			return reader.Update(ctx, object) //nolint:wrapcheck // The same.
		}
	}
	fails := func(err error) func(context.Context) error {
		return func(context.Context) error { broken = err; return nil }
	}
	one, two := env("HTTPS_PROXY", "http://one", "NO_PROXY", ".svc"), env("HTTPS_PROXY", "http://two", "NO_PROXY", ".svc")
	if _, err := c.Env(); err == nil || !strings.Contains(err.Error(), "has not been read yet") {
		t.Errorf("before the first check: %v", err)
	}
	for i, step := range []struct {
		reason  string
		do      func(context.Context) error
		want    []corev1.EnvVar
		unknown string
		changed bool
		invalid bool
	}{
		{reason: "it is missing", do: fails(nil), unknown: "the proxies for operators are unknown: ConfigMap home/proxy of --operator-proxy does not exist; create it", invalid: true},
		{reason: "it cannot be read", do: fails(errors.New("broken")), unknown: "reading ConfigMap home/proxy of --operator-proxy: broken", invalid: true},
		{reason: "it can be read again", do: fails(nil), unknown: "does not exist", invalid: true},
		{reason: "it is invalid", do: write(map[string]string{"proxy": ""}), unknown: "ConfigMap home/proxy of --operator-proxy: unknown key proxy", invalid: true},
		{reason: "it is valid", do: write(map[string]string{"httpsProxy": "http://one"}), want: one, changed: true},
		{reason: "nothing new", do: fails(nil), want: one},
		{reason: "it is invalid again", do: write(map[string]string{"httpsProxy": "one"}), want: one, invalid: true},
		{reason: "it cannot be read", do: fails(errors.New("broken")), want: one, invalid: true},
		{reason: "it can be read again", do: fails(nil), want: one, invalid: true},
		{reason: "another proxy", do: write(map[string]string{"httpsProxy": "http://two"}), want: two, changed: true},
		{reason: "it is deleted", do: func(ctx context.Context) error { return reader.Delete(ctx, object) }, want: two, invalid: true},
		{reason: "it has no proxy", do: func(ctx context.Context) error {
			object.ResourceVersion = ""
			return write(nil)(ctx)
		}, changed: true},
	} {
		if err := step.do(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Check(t.Context())
		got, err := c.Env()
		_, unknown := errors.AsType[*UnknownError](err)
		if diff := cmp.Diff(step.want, got); diff != "" || unknown != (step.unknown != "") || err != nil && !strings.Contains(err.Error(), step.unknown) {
			t.Errorf("%d: %s: error %v, -want, +got:\n%s", i, step.reason, err, diff)
		}
		changed := false
		select {
		case <-c.Changes():
			changed = true
		default:
		}
		if valid := testutil.ToFloat64(settingsValid) == 1; changed != step.changed || valid == step.invalid {
			t.Errorf("%d: %s: changed %v, valid %v", i, step.reason, changed, valid)
		}
	}
}
