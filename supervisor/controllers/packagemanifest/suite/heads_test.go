package suite_test

import (
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestHeadsThatCannotBeRead has a catalog with a large head, a head over the limit of a message, and one that is no
// ClusterServiceVersion. Only the channels of the last two are missing.
func TestHeadsThatCannotBeRead(t *testing.T) {
	w := supervise(t)
	padded := func(name string, length int) fakecatalog.Package {
		padding := strings.Repeat("x", length)
		text := strings.Replace(csv(name+".v1", "1.0.0"), `"displayName":"Lamp"`, `"displayName":"Lamp","description":"`+padding+`"`, 1)
		return fakecatalog.Simple(name, fakecatalog.Entry{Name: name + ".v1", Version: "1.0.0", Objects: []string{text}})
	}
	broken := fakecatalog.Entry{Name: "lamp.v0", Version: "0.1.0", Objects: []string{`{"kind":"ClusterServiceVersion","metadata":{"name":7}}`}}
	lamp := sold("lamp", 2)
	lamp.Channels = append(lamp.Channels, fakecatalog.Channel{Name: "broken", Entries: []fakecatalog.Entry{broken}})
	// A message contains an inline ClusterServiceVersion twice.
	served := fakecatalog.StartExtended(t, lamp, padded("large", 5<<20), padded("oversized", 33<<20), sold("torch", 2))
	w.Create(fixtures.ServedCatalog(w.global, "shop", served.Address()))
	w.available()
	shown := `jsonpath={range .items[*]}{.metadata.name}{range .status.channels[*]} {.name}={.currentCSV}{end}{"\n"}{end}`
	w.Eventually(func() string {
		return w.kubectl("get", "packagemanifests", "-n", controlplane.Namespace(t), "-o", shown)
	}).Should(gomega.Equal("lamp stable=lamp.v2\nlarge stable=large.v1\ntorch stable=torch.v2\n"))
}
