package clusterserviceversion

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/chandlery/chandlery/supervisor/webhook"
)

// TestCanLinger checks that the server version is read only for converting servers, and that an
// unreadable one does not count.
func TestCanLinger(t *testing.T) {
	converts := hookedScope(t).served.servers
	for name, tt := range map[string]struct {
		servers []webhook.Server
		version string
		err     error
		want    bool
	}{
		"New":        {servers: converts, version: "v1.36.3", want: true},
		"OfAVendor":  {servers: converts, version: "v1.30.1-eks-36c5e4a+x", want: true},
		"Old":        {servers: converts, version: "v1.29.9"},
		"Unreadable": {servers: converts, version: "latest"},
		"Away":       {servers: converts, err: errors.New("away")},
		"NoNeed":     {servers: []webhook.Server{{Deployment: "kettle"}}, err: errors.New("away")},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reconciler{serverVersion: func() (string, error) { return tt.version, tt.err }}
			got, err := r.canLinger(tt.servers)
			if got != tt.want || (err != nil) != (name == "Away") {
				t.Errorf("it is %t, want %t, error %v", got, tt.want, err)
			}
		})
	}
}

// TestLingers checks that only pods that convert keep running for a while.
func TestLingers(t *testing.T) {
	s := hookedScope(t)
	spec := s.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
	lingers := func(deployment string) bool {
		d := &appsv1.Deployment{Spec: *spec.Spec.DeepCopy()}
		d.Name = deployment
		s.mount(d)
		l := d.Spec.Template.Spec.Containers[0].Lifecycle
		return l != nil && l.PreStop != nil
	}
	if lingers("kettle") {
		t.Error("pods linger that cannot")
	}
	s.served.lingers = true
	if !lingers("kettle") {
		t.Error("pods do not linger that convert")
	}
	if lingers("idle") {
		t.Error("pods linger that serve nothing")
	}
	s.served.servers[0].Webhooks = s.served.servers[0].Webhooks[:1]
	if lingers("kettle") {
		t.Error("pods linger that convert nothing")
	}
}
