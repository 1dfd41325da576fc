package suite_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestSlowCatalogs has several catalogs of a tenant that send each of their heads some seconds late. The change of a catalog in
// another namespace is served at once.
func TestSlowCatalogs(t *testing.T) {
	w := supervise(t)
	tenant := controlplane.Namespace(t)
	served := w.sells(w.global, "shop", "Shop", nil, "lamp")
	w.available()
	names := func() [][]string { return w.rows("-n", w.global, "--output=custom-columns=NAME:.metadata.name") }
	w.Eventually(names).Should(gomega.Equal([][]string{{"lamp"}}))
	var packages []fakecatalog.Package
	for i := range 30 {
		packages = append(packages, sold(fmt.Sprintf("slow%02d", i), 1))
	}
	var slow []*fakecatalog.Server
	for i := range 4 {
		one := fakecatalog.StartExtended(t, packages...)
		one.DelayHeads(4 * time.Second)
		w.Create(fixtures.ServedCatalog(tenant, fmt.Sprintf("slow%d", i), one.Address()))
		slow = append(slow, one)
	}
	read := func() (n int) {
		for _, one := range slow {
			n += one.Heads()
		}
		return n
	}
	w.Eventually(read).Should(gomega.BeNumerically(">=", 2))
	served.Serve(sold("lamp", 2), sold("torch", 2))
	w.Eventually(names).WithTimeout(20 * time.Second).Should(gomega.Equal([][]string{{"lamp"}, {"torch"}}))
}
