package supervisor

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest"
	"github.com/chandlery/chandlery/supervisor/imagesources"
)

// defaults returns the options for a command line without flags.
func defaults(t *testing.T, args ...string) Options {
	t.Helper()
	o := Options{}
	flags := pflag.NewFlagSet("supervisor", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestDefaultsAreValid(t *testing.T) {
	o := defaults(t)
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
	if o.Identity == "" || o.LeaderElectionNamespace == "" {
		t.Errorf("options %+v", o)
	}
}

func TestFlagsSetTheOptions(t *testing.T) {
	o := defaults(t, "--identity=a", "--lease-duration=3s", "--renew-deadline=2s", "--retry-period=1s", "--global-catalog-namespace=shops",
		"--leader-election-namespace=home", "--catalog-refresh-interval=5s", "--install-plan-retry-timeout=0", "--failover-rate=2.5", "--failover-burst=7", "--concurrency=9",
		"--metrics-address=0", "--metrics-tls-cert=c", "--metrics-tls-key=k", "--health-address=127.0.0.1:1", "--kubeconfig=file",
		"--registry-image=r:1", "--catalog-server=registry", "--catalog-replicas=3", "--catalog-content=init-container", "--registry-memory-limit=2Gi",
		"--bundle-cache-dir=there", "--bundle-cache-size=2Gi", "--catalog-cache-dir=here", "--catalog-cache-size=32Mi", "--bundle-unpack-timeout=3m",
		"--packagemanifests=disabled", "--packagemanifests-address=:1",
		"--set-workload-user-id=false", "--image-plain-http", "--image-skip-tls-verify", "--image-config=dir", "--image-registries-conf=conf", "--image-certs-dir=a,b", "--image-ca=ca", "--image-pull-secrets=a/b",
		"--operator-proxy=a/d", "--image-proxy=http://web.example", "--image-no-proxy=.example", "--image-proxy-credentials=a/c", "--protected-copied-csv-namespaces=a,b", "--manager-namespaces=c,d")
	want := Options{
		Kubeconfig: "file", Identity: "a", LeaderElectionNamespace: "home",
		LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: time.Second,
		MetricsAddress: "0", MetricsTLS: MetricsTLS{"c", "k"}, HealthAddress: "127.0.0.1:1", GlobalCatalogNamespace: "shops", ProtectedCopiedCSVNamespaces: []string{"a", "b"}, ManagerNamespaces: []string{"c", "d"},
		CatalogRefreshInterval: 5 * time.Second, FailoverRate: 2.5, FailoverBurst: 7, Concurrency: 9,
		Caches: Caches{BundleDir: "there", BundleSize: 2 << 30, CatalogDir: "here", CatalogSize: 32 << 20}, BundleUnpackTimeout: 3 * time.Minute,
		Catalogs: catalogsource.Config{
			Settings: deployment.Settings{
				RegistryImage: "r:1", Server: deployment.ServerRegistry, Replicas: 3, Content: deployment.ContentCopy, MemoryLimit: "2Gi",
			},
			PlainHTTP: true, SkipTLSVerify: true, PullSecrets: []string{"a/b"},
			Registries: sources.Paths{Config: "dir", RegistriesConf: "conf", CertsDirs: []string{"a", "b"}, CA: "ca"},
			Proxy:      imagesources.Proxy{URL: "http://web.example", Exceptions: ".example", Credentials: "a/c"},
		},
		OperatorProxy:    "a/d",
		PackageManifests: packagemanifest.Setting{Mode: packagemanifest.Disabled, Address: ":1"},
	}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		reason string
		change func(*Options)
		want   []string
	}{
		{reason: "identity", change: func(o *Options) { o.Identity = "" }, want: []string{"--identity is empty; give each replica a name of its own"}},
		{reason: "namespace of the Lease", change: func(o *Options) { o.LeaderElectionNamespace = "" }, want: []string{"--leader-election-namespace is empty; name"}},
		{reason: "global namespace", change: func(o *Options) { o.GlobalCatalogNamespace = "" }, want: []string{"--global-catalog-namespace is empty; name"}},
		{reason: "retry period", change: func(o *Options) { o.RetryPeriod = 0 }, want: []string{"--retry-period is 0s; it has to be above 0"}},
		{reason: "renew deadline", change: func(o *Options) { o.RenewDeadline = o.RetryPeriod * 6 / 5 }, want: []string{"--renew-deadline is 600ms; it has to be more than 1.2 times --retry-period (500ms)"}},
		{reason: "lease duration", change: func(o *Options) { o.LeaseDuration = o.RenewDeadline }, want: []string{"--lease-duration is 10s; it has to be at least 1s more than --renew-deadline (10s)"}},
		{reason: "too little between leaders", change: func(o *Options) { o.LeaseDuration = o.RenewDeadline + time.Second - 1 }, want: []string{"at least 1s more", "whole seconds"}},
		{reason: "part of a second", change: func(o *Options) { o.LeaseDuration += time.Millisecond }, want: []string{"--lease-duration is 15.001s; it has to be whole seconds"}},
		{reason: "longer than a Lease counts", change: func(o *Options) { o.LeaseDuration = 61 * time.Second }, want: []string{"--lease-duration is 1m1s; it has to be at most 1m0s"}},
		{reason: "managers", change: func(o *Options) { o.ManagerNamespaces = []string{"a", "B"} }, want: []string{"--manager-namespaces is \"B\""}},
		{reason: "refresh", change: func(o *Options) { o.CatalogRefreshInterval = 0 }, want: []string{"--catalog-refresh-interval is 0s; it has to be at least 1s"}},
		{reason: "retry timeout", change: func(o *Options) { o.InstallPlans.RetryTimeout = -1 }, want: []string{"--install-plan-retry-timeout is -1ns; it cannot be negative"}},
		{
			reason: "hosting",
			change: func(o *Options) {
				o.Catalogs = catalogsource.Config{Settings: deployment.Settings{RegistryImage: "A B", Server: "odd", Replicas: 33, Content: "none"}, PullSecrets: []string{"a/b", "c", "D/e"}}
			},
			want: []string{
				`--registry-image is "A B", which names no image`, `--catalog-server is "odd"; it has to be one of image, registry`,
				"--catalog-replicas is 33; it has to be from 0 to 32", `--catalog-content is "none"`,
				`--image-pull-secrets has "c/", which names no Secret; write it as NAMESPACE/NAME`, `--image-pull-secrets has "D/e"`,
			},
		},
		{reason: "bundle cache", change: func(o *Options) { o.Caches.BundleSize = 1 << 20 }, want: []string{"--bundle-cache-size is 1Mi; it has to be at least 64Mi"}},
		{reason: "catalog cache", change: func(o *Options) { o.Caches.CatalogSize = 1 << 20 }, want: []string{"--catalog-cache-size is 1Mi; it has to be at least 16Mi"}},
		{reason: "bundle timeout", change: func(o *Options) { o.BundleUnpackTimeout = -1 }, want: []string{"--bundle-unpack-timeout is -1ns; it cannot be negative"}},
		{reason: "failover rate", change: func(o *Options) { o.FailoverRate = 0 }, want: []string{"--failover-rate is 0; it has to be above 0"}},
		{reason: "failover burst", change: func(o *Options) { o.FailoverBurst = 0 }, want: []string{"--failover-burst is 0; it has to be at least 1"}},
		{reason: "concurrency", change: func(o *Options) { o.Concurrency = 0 }, want: []string{"--concurrency is 0; it has to be at least 1"}},
		{reason: "all at once", change: func(o *Options) { *o = Options{} }, want: []string{"--identity", "--retry-period", "--lease-duration", "--concurrency"}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			o := defaults(t)
			tt.change(&o)
			err := o.Validate()
			if err == nil {
				t.Fatal("there was no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not contain %q", err, want)
				}
			}
			if lines := strings.Count(err.Error(), "\n") + 1; len(tt.want) == 1 && lines != 1 {
				t.Errorf("%d problems for one cause: %v", lines, err)
			}
		})
	}
}
