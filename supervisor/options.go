package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/bundleimage"
	"github.com/chandlery/chandlery/supervisor/bundleimage/nodepull"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource"
	"github.com/chandlery/chandlery/supervisor/controllers/installplan"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest"
	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/supervisor/discovery/optional"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
	"github.com/chandlery/chandlery/supervisor/operatorproxy"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// namespaceFile holds the namespace of a process in a pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// fenceMargin is the minimum time between the last write of a leader that cannot renew its Lease and the
// takeover by a standby.
const fenceMargin = time.Second

// defaultNamespace holds the Lease of supervisors that run outside a cluster.
const defaultNamespace = "default"

// Options are the settings of the supervisor process.
type Options struct {
	// Kubeconfig is the path of a kubeconfig; empty for the one of the environment, or of the pod.
	Kubeconfig string
	// Identity is the beginning of the process's name in the Lease.
	Identity string
	// LeaderElectionNamespace is the namespace of the Lease.
	LeaderElectionNamespace string
	// ManagerNamespaces are the namespaces in which any Deployment or Lease that looks like that of a lifecycle
	// manager counts, whatever its service account may do.
	ManagerNamespaces []string
	// LeaseDuration, RenewDeadline and RetryPeriod are the times of leader
	// election, as client-go's leaderelection package defines them.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// MetricsAddress and HealthAddress are the addresses to listen on; "0" to not listen.
	MetricsAddress, HealthAddress string
	// MetricsTLS secures the metrics.
	MetricsTLS MetricsTLS
	// GlobalCatalogNamespace contains the catalogs that serve every namespace.
	GlobalCatalogNamespace string
	// ProtectedCopiedCSVNamespaces get copies of the ClusterServiceVersions for all namespaces, even if the OLMConfig
	// disables copies.
	ProtectedCopiedCSVNamespaces []string
	// CatalogRefreshInterval is the polling interval for the content of a catalog. A catalog with the extension API
	// reports changes without polling.
	CatalogRefreshInterval time.Duration
	// InstallPlans are the settings for InstallPlans.
	InstallPlans installplan.Settings
	// Caches are the directories for content.
	Caches Caches
	// ImagePull is who pulls bundle images.
	ImagePull nodepull.Mode
	// BundleUnpackTimeout is the maximum time to pull a bundle image, unless an OperatorGroup sets another.
	BundleUnpackTimeout time.Duration
	// FailoverRate is the maximum number of pods of catalogs that are marked or deleted per second. FailoverBurst is
	// the maximum at once after an idle time.
	FailoverRate  float64
	FailoverBurst int
	// Concurrency is the number of objects that each controller reconciles at once.
	Concurrency int
	// TakeOver makes the process take over from a running lifecycle manager before it leads. Without it, the process
	// waits until it has stopped.
	TakeOver bool
	// Catalogs configures how catalogs are run.
	Catalogs catalogsource.Config
	// PackageManifests is the setting of the API packages.operators.coreos.com. If it is zero, the API is served in a pod.
	PackageManifests packagemanifest.Setting
	// OpenShift is the setting of the API config.openshift.io. If it is zero, the API is used if it is installed.
	OpenShift discovery.Setting
	// OperatorProxy is the ConfigMap with the proxies for the containers of operators, as NAMESPACE/NAME; empty for
	// those of OpenShift.
	OperatorProxy string
	// Version is the version of the program. It determines the default of some flags.
	Version string
}

// AddFlags adds a flag for each option, with its default.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig file; default: $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount")
	fs.StringVar(&o.Identity, "identity", defaultIdentity(), "name of this process in leader election; a random suffix makes it unique")
	fs.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", ownNamespace(),
		"namespace of the Lease "+api.LeaseName+"; in a pod, the default is the namespace of the pod")
	fs.StringSliceVar(&o.ManagerNamespaces, "manager-namespaces", nil, "namespaces in which each Deployment that resembles OLM, and each holder of a Lease "+api.LeaseName+", counts as a competing manager; in other namespaces, only one whose ServiceAccount has cluster-wide permission to write the status of ClusterServiceVersions or InstallPlans")
	fs.DurationVar(&o.LeaseDuration, "lease-duration", 15*time.Second, "time without renewal after which a standby takes the Lease; whole seconds, at most 60s")
	fs.DurationVar(&o.RenewDeadline, "renew-deadline", 10*time.Second, "time limit for the leader to renew the Lease before it stops leading; at least 1s less than --lease-duration")
	fs.DurationVar(&o.RetryPeriod, "retry-period", 500*time.Millisecond, "pause between attempts to take or renew the Lease")
	fs.StringVar(&o.MetricsAddress, "metrics-address", ":8080", `address that serves /metrics; "0" for none`)
	o.MetricsTLS.addFlags(fs)
	fs.StringVar(&o.HealthAddress, "health-address", ":8081", `address that serves /healthz and /readyz; "0" for none`)
	fs.StringVar(&o.GlobalCatalogNamespace, "global-catalog-namespace", "olm", "namespace whose CatalogSources serve the Subscriptions of all namespaces")
	fs.StringSliceVar(&o.ProtectedCopiedCSVNamespaces, "protected-copied-csv-namespaces", nil, "namespaces that get copies of ClusterServiceVersions even if the OLMConfig sets disableCopiedCSVs")
	fs.DurationVar(&o.CatalogRefreshInterval, "catalog-refresh-interval", 30*time.Second, "time between two checks of a catalog for new content; Chandlery's registry also reports changes immediately; does not apply to opm, whose content the supervisor reads at each new connection and every 30m")
	fs.DurationVar(&o.InstallPlans.RetryTimeout, "install-plan-retry-timeout", time.Minute, "time for retries of an InstallPlan step whose error a user must fix, such as an invalid object; then the plan fails")
	fs.Var(&o.InstallPlans.BundleKinds, plansteps.FlagKind, "additional kind that bundles may contain, as GROUP/KIND, or GROUP/KIND:cluster for a cluster-scoped kind; may be repeated; 'supervisor rbac' prints the permissions that the supervisor needs for it")
	fs.BoolVar(&o.InstallPlans.CRDAsServiceAccount, "crd-as-service-account", false, "write the CustomResourceDefinitions of bundles as the ServiceAccount that the OperatorGroup names, if any")
	o.Caches.addFlags(fs)
	fs.Var(&o.ImagePull, nodepull.Flag, "what pulls bundle images: supervisor, node, or auto (the supervisor; a node if no source allows the supervisor to pull)")
	fs.DurationVar(&o.BundleUnpackTimeout, "bundle-unpack-timeout", bundleimage.DefaultTimeout, "time limit for pulling a bundle image, if the OperatorGroup has no annotation operatorframework.io/bundle-unpack-timeout; 0: no limit")
	fs.Float64Var(&o.FailoverRate, "failover-rate", 10, "largest number of catalog pods per second that the supervisor marks as not ready or deletes after a node is lost")
	fs.IntVar(&o.FailoverBurst, "failover-burst", 50, "number of catalog pods that fail over without delay, before --failover-rate applies")
	fs.IntVar(&o.Concurrency, "concurrency", 4, "number of objects that each controller reconciles at once")
	fs.BoolVar(&o.TakeOver, "takeover", false, "if OLM runs, take over from it before leading, instead of waiting")
	fs.Var(&o.PackageManifests.Mode, "packagemanifests", "when to serve PackageManifests (packages.operators.coreos.com/v1); auto: if the supervisor runs in a pod; disabled: never, and the supervisor deletes the APIService of this installation; only: always, and the supervisor runs no controllers")
	fs.StringVar(&o.PackageManifests.Address, "packagemanifests-address", ":10250", "address that serves PackageManifests to the API server")
	fs.Var(&o.OpenShift, optional.OpenShift, "whether to use OpenShift's settings: Proxy \"cluster\" for operator containers, and the objects with image mirrors and policies; auto: if the cluster has the API group config.openshift.io; required: always, and fail without the group; disabled: never")
	fs.StringVar(&o.OperatorProxy, operatorproxy.Flag, "", "ConfigMap with the proxies of operators, as NAMESPACE/NAME; overrides OpenShift's Proxy \"cluster\"")
	o.Catalogs.AddFlags(fs, o.Version)
}

// Validate returns an error for every invalid option, with a remedy.
func (o *Options) Validate() error {
	var problems []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	require(o.Identity != "", "--identity is empty; give each replica a name of its own")
	require(o.LeaderElectionNamespace != "", "--leader-election-namespace is empty; name the namespace that holds the Lease")
	require(o.GlobalCatalogNamespace != "", "--global-catalog-namespace is empty; name the namespace of the global catalogs")
	requireAddress := func(flag, address string) {
		require(usable(address), "%s is %q; it has to be host:port with a port up to 65535, or 0 for none", flag, address)
	}
	requireAddress("--metrics-address", o.MetricsAddress)
	requireAddress("--health-address", o.HealthAddress)
	requireAddress("--packagemanifests-address", o.PackageManifests.Address)
	require(o.PackageManifests.Address != "0", "--packagemanifests-address is 0; use --packagemanifests=disabled to not serve PackageManifests")
	requireNamespace := func(flag, namespace string) {
		problems := validation.IsDNS1123Label(namespace)
		require(namespace == "" || len(problems) == 0, "%s is %q, which cannot be a namespace: %s", flag, namespace, strings.Join(problems, "; "))
	}
	requireNamespace("--leader-election-namespace", o.LeaderElectionNamespace)
	requireNamespace("--global-catalog-namespace", o.GlobalCatalogNamespace)
	for _, namespace := range o.ProtectedCopiedCSVNamespaces {
		requireNamespace("--protected-copied-csv-namespaces", namespace)
	}
	for _, namespace := range o.ManagerNamespaces {
		requireNamespace("--manager-namespaces", namespace)
	}
	if o.OperatorProxy != "" {
		if _, err := operatorproxy.ParseName(o.OperatorProxy); err != nil {
			problems = append(problems, err)
		}
	}
	require(o.RetryPeriod > 0, "--retry-period is %s; it has to be above 0", o.RetryPeriod)
	// client-go extends the retry period by up to a fifth, at random.
	require(o.RenewDeadline > o.RetryPeriod*6/5, "--renew-deadline is %s; it has to be more than 1.2 times --retry-period (%s)", o.RenewDeadline, o.RetryPeriod)
	// A request that a leader sent just before its renew deadline must arrive before another process leads.
	require(o.LeaseDuration-o.RenewDeadline >= fenceMargin, "--lease-duration is %s; it has to be at least %s more than --renew-deadline (%s)", o.LeaseDuration, fenceMargin, o.RenewDeadline)
	require(o.LeaseDuration <= competing.MaxLeaseDuration, "--lease-duration is %s; it has to be at most %s, as supervisors take no Lease for longer", o.LeaseDuration, competing.MaxLeaseDuration)
	// The Lease stores whole seconds, and a standby uses the stored value. With a fraction it would take over before
	// the leader stops.
	require(o.LeaseDuration%time.Second == 0, "--lease-duration is %s; it has to be whole seconds, as a Lease counts them", o.LeaseDuration)
	require(o.CatalogRefreshInterval >= time.Second, "--catalog-refresh-interval is %s; it has to be at least 1s", o.CatalogRefreshInterval)
	require(o.InstallPlans.RetryTimeout >= 0, "--install-plan-retry-timeout is %s; it cannot be negative", o.InstallPlans.RetryTimeout)
	require(o.BundleUnpackTimeout >= 0, "--bundle-unpack-timeout is %s; it cannot be negative, 0 is for as long as it takes", o.BundleUnpackTimeout)
	require(o.FailoverRate > 0, "--failover-rate is %g; it has to be above 0", o.FailoverRate)
	require(o.FailoverBurst > 0, "--failover-burst is %d; it has to be at least 1", o.FailoverBurst)
	require(o.Concurrency > 0, "--concurrency is %d; it has to be at least 1", o.Concurrency)
	return errors.Join(append(problems, o.MetricsTLS.validate(), o.Caches.validate(), o.Catalogs.Validate())...)
}

// usable reports whether an address can be listened on.
func usable(address string) bool {
	if address == "0" || address == "" {
		return true
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// defaultIdentity returns the host's name. In a pod, this is the pod's name.
func defaultIdentity() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "supervisor"
	}
	return host
}

func ownNamespace() string {
	return cmp.Or(podNamespace(), defaultNamespace)
}

// podNamespace returns the namespace of the pod that this process runs in; empty outside a cluster.
func podNamespace() string {
	text, err := os.ReadFile(namespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
