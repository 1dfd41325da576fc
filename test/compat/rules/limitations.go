package rules

// Client is an unmodified client of OLM.
type Client struct {
	Name    string
	Version string
	// Module is the Go module that the tests build, with its version; empty if they only send its requests.
	Module string
	// Checks are the rules or tests that use the client.
	Checks string
	// Limits state what does not work with it, and why. They are empty if nothing is known.
	Limits []Limit
}

// Limit is what does not work with a client, and why.
type Limit struct{ Missing, Reason string }

// Clients returns the clients that the tests use.
func Clients() []Client {
	return []Client{
		{
			Name: "Argo CD", Module: "github.com/argoproj/argo-cd/v3 v3.2.0", Version: "v3.2.0", Checks: "T1 to T9",
			Limits: []Limit{
				{"a Subscription stays Progressing if an older version works and the newer one failed", "the state is UpgradePending until the newer version has succeeded (decision 6); with OLM it becomes Healthy"},
				{
					"a Subscription stays Progressing if an older version works and the image of the newer one cannot be pulled",
					"the state is AtLatestKnown, but InstallPlanPending is True, because the InstallPlan exists before the image is pulled (decision 20); with OLM it is Healthy",
				},
			},
		},
		{Name: "Helm", Module: "helm.sh/helm/v4 v4.3.1", Version: "v4.3.1", Checks: "deploy/suite"},
		{
			Name: "kstatus, of Flux and Helm", Module: "sigs.k8s.io/cli-utils v0.37.2", Version: "v0.37.2", Checks: "T1",
			Limits: []Limit{{"it does not wait for an installation", "as with OLM, no kind has the condition Ready"}},
		},
		{
			Name: "kubectl", Module: "k8s.io/kubectl v0.37.2", Version: "v1.37.2", Checks: "T10, T11, supervisor/controllers/packagemanifest/suite",
		},
		{
			Name: "kubectl-operator", Module: "github.com/operator-framework/kubectl-operator v0.6.0", Version: "v0.6.0", Checks: "T20 to T28, test/e2e/nodes/operatorhub",
			Limits: []Limit{
				{"`kubectl operator catalog add` is not tried", "it pulls the image of the catalog on the machine of the user"},
			},
		},
		{
			Name: "operator-sdk", Version: "60559f3", Checks: "T30 to T32, test/e2e/nodes/operatorhub",
			Limits: []Limit{
				{"only its requests are tried, not the program", "its module cannot be built, because the look-up of a checksum fails"},
				{
					"without OLM's package server, `operator-sdk olm status` and `operator-sdk olm uninstall` find no OLM; with `--version`, `operator-sdk olm uninstall` deletes the kinds nevertheless",
					"they read the version from the ClusterServiceVersion packageserver, which a takeover keeps until `migrate --finish`",
				},
				{"`operator-sdk run bundle` with a registry without TLS, unless --image-plain-http or a hosts.toml of the supervisor allows it", "the supervisor, not a pod, pulls the bundle (decision 20)"},
			},
		},
		{Name: "client of operator-registry", Module: "github.com/operator-framework/operator-registry v1.73.0", Version: "v1.73.0", Checks: "test/conformance"},
	}
}
