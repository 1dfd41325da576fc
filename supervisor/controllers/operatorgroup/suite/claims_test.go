package suite_test

import (
	"testing"

	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/controlplane"
)

func TestClaimsWhatOperatorsProvide(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	og, csv := group(w.namespace, w.namespace), w.operator(w.namespace, "Lamp", "Tray")
	w.create(og, csv)
	w.claims(og, "Lamp", "Tray")

	w.change(csv, func() { csv.Spec.CustomResourceDefinitions.Owned = csv.Spec.CustomResourceDefinitions.Owned[:1] })
	w.claims(og, "Lamp")
	w.remove(csv)
	w.claims(og)
}

func TestFixedClaimsStay(t *testing.T) {
	w := newWorld(t)
	s := w.supervise()
	og, csv := group(w.namespace, w.namespace), w.operator(w.namespace, "Lamp")
	og.Spec.StaticProvidedAPIs = true
	og.Annotations = map[string]string{"olm.providedAPIs": w.api("Tray")}
	w.create(og, csv)
	w.becomes(func(g gomega.Gomega) { g.Expect(w.rolesOf(g, w.namespace)).To(gomega.HaveLen(3)) })
	w.staysQuiet(s)
	w.claims(og, "Tray")
}

// TestOneOfTwoGroupsHasAnAPI creates two groups for all namespaces at the same moment. Each has an
// operator that provides the same API.
func TestOneOfTwoGroupsHasAnAPI(t *testing.T) {
	w := newWorld(t)
	s := w.supervise()
	other := controlplane.Namespace(t)
	groups := map[string]*operatorsv1.OperatorGroup{w.namespace: group(w.namespace), other: group(other)}
	for namespace, og := range groups {
		w.create(og, w.operator(namespace, "Lamp"))
	}
	winner := ""
	w.becomes(func(g gomega.Gomega) {
		winner = ""
		for namespace, og := range groups {
			g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(og), og)).To(gomega.Succeed())
			if og.Annotations["olm.providedAPIs"] == w.api("Lamp") {
				g.Expect(winner).To(gomega.BeEmpty(), "both groups have the API")
				winner = namespace
			}
		}
		g.Expect(winner).NotTo(gomega.BeEmpty(), "no group has the API")
	})
	w.staysQuiet(s)
	loser := other
	if winner == other {
		loser = w.namespace
	}
	g := groups[loser]
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(g), g)).To(gomega.Succeed())
	w.Expect(g.Annotations["olm.providedAPIs"]).To(gomega.BeEmpty())

	w.remove(w.operator(winner))
	w.claims(groups[loser], "Lamp")
	w.claims(groups[winner])
}

// TestGroupsThatComeApartHaveTheirAPIs narrows the targets of a group, so that it shares no
// namespace with the other group any more.
func TestGroupsThatComeApartHaveTheirAPIs(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	other := controlplane.Namespace(t)
	wide, narrow := group(w.namespace), group(other, other)
	w.create(wide, w.operator(w.namespace, "Lamp"))
	w.claims(wide, "Lamp")
	w.create(narrow, w.operator(other, "Lamp"))
	w.status(narrow, func(g gomega.Gomega, s operatorsv1.OperatorGroupStatus) {
		g.Expect(s.Namespaces).NotTo(gomega.BeEmpty())
	})

	w.change(wide, func() { wide.Spec.TargetNamespaces = []string{w.namespace} })
	w.claims(narrow, "Lamp")
	w.claims(wide, "Lamp")
}
