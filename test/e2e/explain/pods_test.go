package explain_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podCases returns cases of pods that cannot run.
func podCases() []broken {
	ails := func(has ill, change ...func(*corev1.PodSpec)) func(*situation) {
		return func(s *situation) {
			s.ward.ails(s.Namespace, has)
			s.wants(lamp(operator("lamp", 1, pods(change...))))
		}
	}
	heals := func(s *situation) { s.ward.heals(s.Namespace) }
	unready := ill{state: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}, warning: [2]string{"Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503"}}
	return []broken{
		{
			reason: "the operator's image cannot be pulled",
			make:   ails(waiting("ErrImagePull", "registry.example.com/lamp:1.0.0: not found")),
			words:  []string{"Pod NAMESPACE/lamp-", "image registry.example.com/lamp:1.0.0 of container manager cannot be pulled", "not found"},
			fix:    heals,
		},
		{
			reason: "the operator crashes",
			make:   ails(crashed("Error", 2, "panic: no wick")),
			words:  []string{"Pod NAMESPACE/lamp-", "container manager ended with exit code 2, panic: no wick"},
			fix:    heals,
		},
		{
			reason: "the operator uses too much memory",
			make: ails(crashed("OOMKilled", 137, ""), func(spec *corev1.PodSpec) {
				spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: quantity("16Mi")}
			}),
			words: []string{"Pod NAMESPACE/lamp-", "memory than its limit of 16Mi"},
		},
		{
			reason: "a Secret for the environment is missing",
			make:   ails(waiting("CreateContainerConfigError", `secret "oil" not found`)),
			words:  []string{"Pod NAMESPACE/lamp-", `secret "oil" not found`},
		},
		{
			reason: "a Secret for a volume is missing",
			make: ails(ill{
				state:   corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
				warning: [2]string{"FailedMount", `MountVolume.SetUp failed for volume "tank" : secret "tank" not found`},
			}),
			words: []string{"Pod NAMESPACE/lamp-", `secret "tank" not found`},
		},
		{
			reason: "the readiness probe fails",
			make:   ails(unready),
			words:  []string{"Pod NAMESPACE/lamp-", "Readiness probe failed", "503"},
		},
		{
			reason: "no node has room",
			make: ails(ill{}, func(spec *corev1.PodSpec) {
				spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: quantity("900")}
			}),
			words: []string{"Pod NAMESPACE/lamp-", "cannot be scheduled", "Insufficient cpu"},
		},
	}
}

// refusalCases returns cases of pods that may not be created.
func refusalCases() []broken {
	return []broken{
		{
			reason: "a quota has no room",
			make: func(s *situation) {
				s.Create(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: quantity("0")}}})
				s.until("the quota's status", func() bool {
					quota := &corev1.ResourceQuota{}
					err := s.Get(s.T.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "none"}, quota)
					return err == nil && len(quota.Status.Hard) > 0
				})
				s.wants(lamp(operator("lamp", 1, pods())))
			},
			words: []string{"Deployment NAMESPACE/lamp", "exceeded quota: none"},
			fix: func(s *situation) {
				if err := s.Delete(s.T.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "none"}}); err != nil {
					s.T.Fatal(err)
				}
			},
		},
		{
			reason: "a LimitRange does not allow what the pods ask for",
			make: func(s *situation) {
				s.limit("64Mi")
				s.wants(lamp(operator("lamp", 1, pods(func(spec *corev1.PodSpec) {
					spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: quantity("128Mi")}
				}))))
			},
			words: []string{
				"Deployment NAMESPACE/lamp: the API server refuses its pods", "maximum memory usage per Container is 64Mi, but limit is 128Mi",
				"spec.limits[0].max.memory of LimitRange NAMESPACE/small",
			},
			fix: func(s *situation) {
				s.patch(&corev1.LimitRange{}, "small", `{"spec":{"limits":[{"type":"Container","max":{"memory":"1Gi"}}]}}`)
			},
		},
		{
			reason: "a LimitRange does not allow the pods of the catalog",
			make: func(s *situation) {
				s.limit("1Mi")
				s.Create(s.group(), s.hosted(s.push(s.T, "limited"), wardName), s.subscription())
			},
			words: []string{"CatalogSource NAMESPACE/wares", "must be less than or equal to memory limit of 1Mi", "spec.limits[0].default.memory of LimitRange NAMESPACE/small"},
		},
		{
			reason: "PodSecurity does not allow the pods",
			make: func(s *situation) {
				namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
				patch := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`
				if err := s.Patch(s.T.Context(), namespace, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
					s.T.Fatal(err)
				}
				s.wants(lamp(operator("lamp", 1, pods(func(spec *corev1.PodSpec) {
					spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
				}))))
			},
			words: []string{"Deployment NAMESPACE/lamp", `violates PodSecurity "restricted`},
		},
		{
			reason: "the ServiceAccount of the pods does not exist",
			make: func(s *situation) {
				s.wants(lamp(operator("lamp", 1, pods(func(spec *corev1.PodSpec) { spec.ServiceAccountName = "lighter" }))))
			},
			words: []string{"Deployment NAMESPACE/lamp", `serviceaccount "lighter" not found`},
			fix: func(s *situation) {
				s.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "lighter"}})
			},
		},
		{
			reason: "an admission webhook refuses the pods",
			make: func(s *situation) {
				s.refuse("pods")
				s.wants(lamp(operator("lamp", 1, pods())))
			},
			words: []string{"Deployment NAMESPACE/lamp", `admission webhook "guard.example.com" denied the request`, "not on my watch"},
			fix:   func(s *situation) { s.admit() },
		},
		{
			reason: "an admission webhook refuses a step",
			make: func(s *situation) {
				s.refuse("configmaps")
				s.wants(lamp(bringing(operator("lamp", 1), `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"}}`)))
			},
			words: []string{"InstallPlan NAMESPACE/install-", "ConfigMap settings", `admission webhook "guard.example.com" denied the request`},
			fix:   func(s *situation) { s.admit() },
		},
	}
}

// limit limits the memory of a container.
func (s *situation) limit(memory string) {
	s.T.Helper()
	s.Create(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: quantity(memory)},
	}}}})
}

func (s *situation) guard() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
}

// refuse creates a webhook that refuses every object of a resource in the namespace.
func (s *situation) refuse(resource string) {
	s.T.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "not on my watch"}}
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			s.T.Error(err)
		}
	}))
	s.T.Cleanup(server.Close)
	guard := s.guard()
	guard.Webhooks = []admissionregistrationv1.ValidatingWebhook{{
		Name: "guard.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
		ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: new(server.URL), CABundle: authority(server.Certificate())},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.Namespace}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
		}},
	}}
	s.Create(guard)
	s.DeleteAtEnd(s.guard())
	// The API server applies the webhook after a moment.
	s.until("a webhook that refuses", func() bool {
		var probe client.Object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "probe"}}
		if resource == "pods" {
			probe = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "probe"}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/probe:1"}},
			}}
		}
		return s.Client.Create(s.T.Context(), probe, client.DryRunAll) != nil
	})
}

// admit deletes the webhook.
func (s *situation) admit() {
	s.T.Helper()
	if err := s.Delete(s.T.Context(), s.guard()); err != nil {
		s.T.Fatal(err)
	}
}

func authority(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// letGo removes the finalizers of an object, which block the deletion of its namespace.
func (s *situation) letGo(o client.Object) {
	o.SetNamespace(s.Namespace)
	err := s.Patch(context.WithoutCancel(s.T.Context()), o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	if client.IgnoreNotFound(err) != nil {
		s.T.Error(err)
	}
}
