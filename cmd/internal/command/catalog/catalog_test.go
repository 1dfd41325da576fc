package catalog

import (
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/explain"
)

// TestNewSource covers valid and invalid settings.
func TestNewSource(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		name     string
		settings settings
		want     string
	}{
		"Image":       {settings: settings{image: "example.com/wares:v1", poll: time.Minute, secrets: []string{"keys"}, priority: 3}},
		"Address":     {settings: settings{address: "registry.shop:50051"}},
		"Name":        {name: "Wares", settings: settings{image: "a"}, want: `argument "Wares" is no name of a CatalogSource: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		"Reference":   {settings: settings{image: "example.com/Wares:v1"}, want: `--image is invalid: reading the reference "example.com/Wares:v1": invalid reference format: repository name (Wares) must be lowercase; write it as HOST/NAME:TAG or HOST/NAME@DIGEST`},
		"Neither":     {want: "set either --image or --address"},
		"Both":        {settings: settings{image: "a", address: "b:1"}, want: "set either --image or --address"},
		"AddressPoll": {settings: settings{address: "b:1", poll: time.Minute}, want: "--poll-interval and --pull-secret need --image: the supervisor pulls no image for --address"},
		"Negative":    {settings: settings{image: "a", poll: -time.Minute}, want: "--poll-interval is -1m0s; it has to be 0 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.name == "" {
				tt.name = "wares"
			}
			source, err := newSource("olm", tt.name, &tt.settings)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tt.want {
				t.Fatalf("error %q, want %q", text, tt.want)
			}
			if err == nil && (source.Spec.Image != tt.settings.image || source.Spec.Address != tt.settings.address || source.Spec.SourceType != operatorsv1alpha1.SourceTypeGrpc) {
				t.Errorf("%+v", source.Spec)
			}
			if (tt.settings.poll > 0) != (err == nil && interval(source) != "") && err == nil {
				t.Errorf("interval %q", interval(source))
			}
		})
	}
}

// TestDifference names the first field that differs.
func TestDifference(t *testing.T) {
	t.Parallel()
	source := func(change func(*operatorsv1alpha1.CatalogSource)) *operatorsv1alpha1.CatalogSource {
		s := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "wares"}}
		s.Spec.Image, s.Spec.Secrets = "a:v1", []string{"x", "y"}
		change(s)
		return s
	}
	same := func(*operatorsv1alpha1.CatalogSource) {}
	for name, tt := range map[string]struct {
		change func(*operatorsv1alpha1.CatalogSource)
		want   string
	}{
		"Same":    {change: same},
		"Order":   {change: func(s *operatorsv1alpha1.CatalogSource) { s.Spec.Secrets = []string{"y", "x"} }},
		"Default": {change: func(s *operatorsv1alpha1.CatalogSource) { s.Spec.GrpcPodConfig = &operatorsv1alpha1.GrpcPodConfig{} }},
		"Image":   {change: func(s *operatorsv1alpha1.CatalogSource) { s.Spec.Image = "a:v2" }, want: `CatalogSource olm/wares exists, and its spec.image is "a:v2", not "a:v1"; change the CatalogSource, or choose another name`},
		"Interval": {change: func(s *operatorsv1alpha1.CatalogSource) {
			s.Spec.UpdateStrategy = &operatorsv1alpha1.UpdateStrategy{RegistryPoll: &operatorsv1alpha1.RegistryPoll{Interval: &metav1.Duration{Duration: time.Hour}}}
		}, want: `CatalogSource olm/wares exists, and its spec.updateStrategy.registryPoll.interval is "1h0m0s", not ""; change the CatalogSource, or choose another name`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := ""
			if err := difference(source(tt.change), source(same)); err != nil {
				text = err.Error()
			}
			if text != tt.want {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
}

// TestUnreadable covers each reason why the CatalogSources cannot be listed.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]console.Code{
		explain.UnreadableForbidden: console.Forbidden, explain.UnreadableNotInstalled: console.Negative, explain.UnreadableUnreachable: console.Unreachable,
	} {
		err := unreadableError(explain.Unreadable{Reason: reason, Message: "it is so"})
		installs := strings.Contains(err.Error(), explain.InstallAPI)
		if got := console.CodeOf(err); got != want || installs != (want == console.Negative) || !strings.HasPrefix(err.Error(), "listing the CatalogSources: it is so") {
			t.Errorf("%s: code %d, want %d; %v", reason, got, want, err)
		}
	}
}

// TestUsersText names the Subscriptions of a catalog.
func TestUsersText(t *testing.T) {
	t.Parallel()
	for want, users := range map[string][]string{
		"No Subscription uses catalog olm/wares.\n":                                                      nil,
		"These Subscriptions use catalog olm/wares, and get no updates without it:\n  a/lamp, b/torch\n": {"a/lamp", "b/torch"},
	} {
		if got := usersText("olm/wares", users); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
