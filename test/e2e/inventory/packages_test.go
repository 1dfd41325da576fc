package inventory_test

import (
	"testing"

	"github.com/chandlery/chandlery/test/sampling"
)

// choice is a package to install and uninstall.
type choice struct {
	name string
	// everywhere is set if the operator watches all namespaces. Otherwise it watches its own.
	everywhere bool
}

// choices returns packages of the real catalog that need no kinds of OpenShift and differ from each
// other: with dozens of definitions or none, with webhooks, conversions, many kinds of permissions,
// and dependencies. Packages that others need come first, so what they leave exists when the others
// come. The first eight cover everything with small definitions, because an API server is slow with
// large ones.
func choices() []choice {
	return []choice{
		{name: "etcd"},
		{name: "cert-manager", everywhere: true},
		{name: "edp-keycloak-operator"},
		{name: "azure-service-operator", everywhere: true},
		{name: "skupper-operator"},
		{name: "annotationlab", everywhere: true},
		{name: "aqua"},
		{name: "kubedb-installer", everywhere: true},
		{name: "mercury-operator"},
		{name: "argocd-operator", everywhere: true},
		{name: "stackgres-community"},
		{name: "bpfman-operator", everywhere: true},
		{name: "percona-postgresql-operator"},
		{name: "strimzi-kafka-operator", everywhere: true},
		{name: "prometheus"},
		{name: "flux", everywhere: true},
		{name: "mongodb-atlas-kubernetes"},
		{name: "grafana-operator", everywhere: true},
		{name: "aerospike-kubernetes-operator"},
		{name: "verticadb-operator", everywhere: true},
		{name: "cass-operator-community"},
		{name: "tempo-operator", everywhere: true},
		{name: "external-secrets-operator"},
		{name: "keda", everywhere: true},
	}
}

// chosen returns the first packages, as many as PACKAGES; all if it is not set.
func chosen(t *testing.T) []choice {
	t.Helper()
	all := choices()
	n := sampling.Number(t, "PACKAGES", len(all), 1)
	if n > len(all) {
		t.Fatalf("$PACKAGES is %d; there are %d packages", n, len(all))
	}
	return all[:n]
}
