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
	og, csv := group(w.Namespace, w.Namespace), w.operator(w.Namespace, "Lamp", "Tray")
	w.Create(og, csv)
	w.claims(og, "Lamp", "Tray")

	w.Modify(csv, func() { csv.Spec.CustomResourceDefinitions.Owned = csv.Spec.CustomResourceDefinitions.Owned[:1] })
	w.claims(og, "Lamp")
	w.remove(csv)
	w.claims(og)
}

func TestFixedClaimsStay(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	og, csv := group(w.Namespace, w.Namespace), w.operator(w.Namespace, "Lamp")
	og.Spec.StaticProvidedAPIs = true
	og.Annotations = map[string]string{"olm.providedAPIs": w.api("Tray")}
	w.Create(og, csv)
	w.EventuallySucceeds(func(g gomega.Gomega) { g.Expect(w.rolesOf(g, w.Namespace)).To(gomega.HaveLen(3)) })
	w.staysQuiet()
	w.claims(og, "Tray")
}

// TestOneOfTwoGroupsHasAnAPI creates two groups for all namespaces at the same moment. Each has an
// operator that provides the same API.
func TestOneOfTwoGroupsHasAnAPI(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	other := controlplane.Namespace(t)
	groups := map[string]*operatorsv1.OperatorGroup{w.Namespace: group(w.Namespace), other: group(other)}
	for namespace, og := range groups {
		w.Create(og, w.operator(namespace, "Lamp"))
	}
	winner := ""
	w.EventuallySucceeds(func(g gomega.Gomega) {
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
	w.staysQuiet()
	loser := other
	if winner == other {
		loser = w.Namespace
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
	wide, narrow := group(w.Namespace), group(other, other)
	w.Create(wide, w.operator(w.Namespace, "Lamp"))
	w.claims(wide, "Lamp")
	w.Create(narrow, w.operator(other, "Lamp"))
	w.status(narrow, func(g gomega.Gomega, s operatorsv1.OperatorGroupStatus) {
		g.Expect(s.Namespaces).NotTo(gomega.BeEmpty())
	})

	w.Modify(wide, func() { wide.Spec.TargetNamespaces = []string{w.Namespace} })
	w.claims(narrow, "Lamp")
	w.claims(wide, "Lamp")
}
