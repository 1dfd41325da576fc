package disconnected_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/nodes"
)

// TestMirroredInstallation installs three operators, and upgrades one from its oldest version along its channel. Nodes and
// pods reach no other registry than the mirror.
func TestMirroredInstallation(t *testing.T) {
	s := newScene(t)
	s.checkSeparation()
	s.create(s.hosted("mirrored", 0))
	s.ready("mirrored")
	for name, one := range operators {
		s.subscribe(name, name, one.versions[0], "mirrored")
	}
	account := s.addPullSecret("lantern", "lantern-operator")
	for name, one := range operators {
		s.succeeded(name, name, head(name))
		if installed := planned(s, name); !slices.Equal(installed, one.versions) {
			t.Errorf("InstallPlans of %s have %v, want %v", name, installed, one.versions)
		}
	}

	// Three upgrades keep the pull secrets that an administrator gave to the ServiceAccount of an operator.
	must(t, s.Get(t.Context(), client.ObjectKeyFromObject(account), account))
	if len(account.ImagePullSecrets) != 1 {
		t.Errorf("the ServiceAccount has pull secrets %v, want that of the administrator", account.ImagePullSecrets)
	}

	// Supervisors pull bundles from pods, and nodes pull everything else.
	for name := range operators {
		if clients := s.mirror.clientsOf("acme/" + name + "-bundle"); !slices.ContainsFunc(clients, isPod) {
			t.Errorf("bundles of %s were pulled by %v, want a pod", name, clients)
		}
	}
	addresses := nodeAddresses(s)
	for _, repository := range []string{catalogRepository, pauseRepository, "chandlery/supervisor", "chandlery/registry"} {
		if clients := s.mirror.clientsOf(repository); !slices.ContainsFunc(clients, func(c string) bool { return slices.Contains(addresses, c) }) {
			t.Errorf("images of %s were pulled by %v, want a node", repository, clients)
		}
	}
}

// addPullSecret adds a pull secret to the ServiceAccount of an operator as soon as it exists.
func (s *scene) addPullSecret(namespace, name string) *corev1.ServiceAccount {
	s.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	s.eventually("the ServiceAccount", func() string {
		return message(s.Get(s.t.Context(), client.ObjectKeyFromObject(account), account))
	})
	patch := client.RawPatch(types.MergePatchType, []byte(`{"imagePullSecrets": [{"name": "of-administrator"}]}`))
	must(s.t, s.Patch(s.t.Context(), account, patch))
	return account
}

// planned returns the versions in the InstallPlans of a namespace, sorted.
func planned(s *scene, namespace string) []string {
	s.t.Helper()
	var plans operatorsv1alpha1.InstallPlanList
	must(s.t, s.List(s.t.Context(), &plans, client.InNamespace(namespace)))
	var all []string
	for i := range plans.Items {
		all = append(all, plans.Items[i].Spec.ClusterServiceVersionNames...)
	}
	slices.Sort(all)
	return all
}

// isPod reports whether an address is that of a pod.
func isPod(address string) bool { return strings.HasPrefix(address, "10.202.") }

func nodeAddresses(s *scene) []string {
	s.t.Helper()
	var list corev1.NodeList
	must(s.t, s.List(s.t.Context(), &list))
	var all []string
	for i := range list.Items {
		for _, address := range list.Items[i].Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				all = append(all, address.Address)
			}
		}
	}
	return all
}

// checkSeparation checks that the source answers this machine, and neither the programs nor containerd on a node.
func (s *scene) checkSeparation() {
	s.t.Helper()
	image := s.bed.Images.Address() + "/" + catalogRepository + ":v1"
	if _, err := catalog(s.t.Context(), "render", image, "--use-http"); err != nil {
		s.t.Fatal(err)
	}
	for _, node := range s.bed.Nodes() {
		out, err := nodes.Command(s.t.Context(), node, filepath.Join(bin, "catalog"), "render", image, "--use-http").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "connection refused") {
			s.t.Errorf("%s pulls from the source: %v\n%.200s", node, err, out)
		}
	}
	if _, err := crane.Digest(s.bed.Images.Address()+"/"+unmirrored, crane.WithContext(s.t.Context())); err != nil {
		s.t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.bed.Namespace(s.t), Name: "unmirrored"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: s.bed.Images.Address() + "/" + unmirrored}}},
	}
	s.create(pod)
	s.eventually("the pull from the source to fail", func() string {
		if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return err.Error()
		}
		for i := range pod.Status.ContainerStatuses {
			waiting := pod.Status.ContainerStatuses[i].State.Waiting
			if waiting != nil && waiting.Reason == "ImagePullBackOff" && strings.Contains(waiting.Message, s.bed.Images.Address()) {
				return ""
			}
		}
		return fmt.Sprintf("%s %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
	})
}
