package inventory_test

import (
	"os"
	"strconv"
	"testing"
)

// choice is a package that is installed and uninstalled.
type choice struct {
	name string
	// everywhere says that its operator watches all namespaces; else its own.
	everywhere bool
}

// choices are packages of the real catalog that need no kinds of OpenShift, none like
// the one before: with definitions by the dozen and with none, with webhooks, with
// conversions, with rights of all sorts, with operators that they need. Those that others
// need too come first, so that what stays of one is there when the other comes. The first
// eight have some of everything, in small definitions: an API server takes its time over
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

// chosen are as many of them as PACKAGES says, all if it says nothing.
func chosen(t *testing.T) []choice {
	t.Helper()
	all := choices()
	text := os.Getenv("PACKAGES")
	if text == "" {
		return all
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > len(all) {
		t.Fatalf("PACKAGES is %q; give a number of packages, %d at most", text, len(all))
	}
	return all[:n]
}
