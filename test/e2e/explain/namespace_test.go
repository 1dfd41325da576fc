package explain_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/controlplane"
)

// goingCases returns cases of namespaces whose deletion does not complete.
func goingCases() []broken {
	return []broken{
		{
			reason: "a finalizer on an object holds the namespace that is being deleted",
			make: func(s *situation) {
				s.wants(lamp(operator("lamp", 1)))
				s.installed("lamp.v1")
				held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "eternal", Finalizers: []string{"example.com/never"}}}
				s.Create(held)
				s.T.Cleanup(func() { s.letGo(held) })
				s.leave()
			},
			words: []string{"namespace NAMESPACE is being deleted since", "configmaps still have the finalizers example.com/never"},
		},
		{
			reason: "a finalizer of its own holds the namespace that is being deleted",
			make: func(s *situation) {
				s.wants(lamp(operator("lamp", 1)))
				s.installed("lamp.v1")
				s.finalizers(s.T.Context(), corev1.FinalizerKubernetes, "example.com/keep")
				s.T.Cleanup(func() { s.finalizers(context.WithoutCancel(s.T.Context()), corev1.FinalizerKubernetes) })
				s.leave()
			},
			words: []string{"namespace NAMESPACE is being deleted since", "its own finalizers block it", "example.com/keep"},
		},
	}
}

// leave deletes the namespace of the situation.
func (s *situation) leave() {
	s.T.Helper()
	if err := s.Delete(s.T.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}); err != nil {
		s.T.Fatal(err)
	}
}

// finalizers sets spec.finalizers of the namespace.
func (s *situation) finalizers(ctx context.Context, names ...corev1.FinalizerName) {
	s.T.Helper()
	namespace := &corev1.Namespace{}
	err := s.Get(ctx, client.ObjectKey{Name: s.Namespace}, namespace)
	if err == nil {
		namespace.Spec.Finalizers = names
		err = s.SubResource("finalize").Update(ctx, namespace)
	}
	if client.IgnoreNotFound(err) != nil {
		s.T.Error(err)
	}
}

// going explains a namespace whose deletion does not complete, with arguments for users who do not
// know its content.
func going(t *testing.T, h *hospital) {
	t.Helper()
	s := h.newSituation(t)
	goingCases()[0].make(s)
	kubeconfig := controlplane.Get(t).Kubeconfig()
	held := []string{"namespace " + s.Namespace + " is being deleted since", "configmaps still have the finalizers example.com/never"}
	for _, args := range [][]string{{"-n", s.Namespace}, {"csv/lamp.v1", "-n", s.Namespace}, {"installplan/gone", "-n", s.Namespace}} {
		text := eventually(t, kubeconfig, args, held, wrong)
		command := "kubectl -n " + s.Namespace + " get configmaps -o custom-columns=KIND:.kind,NAME:.metadata.name,FINALIZERS:.metadata.finalizers"
		if !strings.Contains(text, command) {
			t.Errorf("%v: it does not say how to find what is held:\n%s", args, text)
		}
	}
	out, _ := exec.CommandContext(t.Context(), program(), "status", "-o", "wide", "--kubeconfig", kubeconfig, "-n", s.Namespace).CombinedOutput() // exit code 2 is expected
	_, trouble, _ := strings.Cut(flowing(string(out)), "PROBLEMS ")
	for _, words := range held {
		if !strings.Contains(trouble, words) {
			t.Errorf("status lacks %q under PROBLEMS:\n%s", words, out)
		}
	}
}
