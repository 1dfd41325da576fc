package refusal_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandlery/chandlery/supervisor/apiserver/refusal"
)

// texts are sentences of a kube-apiserver, with their reasons.
var texts = []struct {
	text string
	want refusal.Reason
}{
	{`pods "a" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1`, refusal.QuotaExceeded},
	{`pods "a" is forbidden: failed quota: small: must specify limits.cpu for: lamp`, refusal.ResourcesRequired},
	{`pods "a" is forbidden: maximum memory usage per Container is 64Mi, but limit is 128Mi`, refusal.LimitExceeded},
	{`pods "a" is forbidden: memory max limit to request ratio per Container is 2, but provided ratio is 4.0`, refusal.LimitExceeded},
	{`Pod "a" is invalid: spec.containers[0].resources.requests: Invalid value: "128Mi": must be less than or equal to memory limit of 64Mi`, refusal.Invalid},
	{`pods "a" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`, refusal.PodSecurityViolated},
	{`Internal error occurred: failed calling webhook "strict.example": failed to call webhook: Post "https://x": dial tcp: connection refused`, refusal.WebhookUnavailable},
	{`admission webhook "strict.example" denied the request: User "u" is forbidden: User may not`, refusal.AdmissionDenied},
	{`configmaps "a" is forbidden: ValidatingAdmissionPolicy 'strict' with binding 'all' denied request: no`, refusal.AdmissionDenied},
	{`pods "a" is forbidden: error looking up service account shop/lamp: serviceaccount "lamp" not found`, refusal.ServiceAccountMissing},
	{`deployments.apps "a" is forbidden: unable to create new content in namespace shop because it is being terminated`, refusal.NamespaceTerminating},
	{`configmaps "a" is forbidden: User "u" cannot get resource "configmaps" in API group "" in the namespace "shop"`, refusal.PermissionDenied},
	{`clusterroles "a" is forbidden: user "u" (groups=["g"]) is attempting to grant RBAC permissions not currently held:`, refusal.EscalationDenied},
	{`Service "a" is invalid: spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive`, refusal.Invalid},
	{`etcdserver: request timed out`, ""},
	{``, ""},
}

func TestOf(t *testing.T) {
	for _, tt := range texts {
		if got := refusal.Of(tt.text); got != tt.want {
			t.Errorf("Of(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestOfError(t *testing.T) {
	resources := schema.GroupResource{Resource: "configmaps"}
	terminating := apierrors.NewForbidden(resources, "a", errors.New("no"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, tt := range []struct {
		reason string
		err    error
		want   refusal.Reason
	}{
		{reason: "no error"},
		{reason: "the cause has a type", err: fmt.Errorf("creating: %w", terminating), want: refusal.NamespaceTerminating},
		{reason: "only the text states it", err: apierrors.NewForbidden(resources, "a", errors.New("exceeded quota: small")), want: refusal.QuotaExceeded},
		{reason: "a permission is missing", err: apierrors.NewForbidden(resources, "a", errors.New(`User "u" cannot get resource "configmaps"`)), want: refusal.PermissionDenied},
		{reason: "another error", err: errors.New("connection reset by peer")},
	} {
		if got := refusal.OfError(tt.err); got != tt.want {
			t.Errorf("%s: OfError(%v) = %q, want %q", tt.reason, tt.err, got, tt.want)
		}
	}
}

func TestWebhook(t *testing.T) {
	for text, want := range map[string]string{
		`failed calling webhook "strict.example": no`: "strict.example",
		`failed calling webhook `:                     "",
		`exceeded quota`:                              "",
	} {
		if got := refusal.Webhook(text); got != want {
			t.Errorf("Webhook(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestImmutable(t *testing.T) {
	invalid := func(field, message string) error {
		return fmt.Errorf("applying: %w", &apierrors.StatusError{ErrStatus: metav1.Status{
			Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: field, Message: message}}},
		}})
	}
	for _, tt := range []struct {
		reason string
		err    error
		want   bool
	}{
		{reason: "an immutable field", err: invalid("data", "field is immutable when `immutable` is set"), want: true},
		{reason: "a value of a PriorityClass", err: invalid("value", "may not be changed in an update."), want: true},
		{reason: "a field that stays once it is set", err: invalid("spec.clusterIPs[0]", "may not change once set"), want: true},
		{reason: "both bounds of a budget", err: invalid("spec", "minAvailable and maxUnavailable cannot be both set"), want: true},
		{reason: "a value out of range", err: invalid("spec.ports[0].port", "must be between 1 and 65535, inclusive")},
		{reason: "a policy, which names no field", err: invalid("", "the port is immutable")},
		{reason: "a missing right", err: &apierrors.StatusError{ErrStatus: metav1.Status{
			Reason: metav1.StatusReasonForbidden, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "spec", Message: "it is immutable"}}},
		}}},
		{reason: "no cause", err: apierrors.NewBadRequest("it is immutable")},
		{reason: "no error"},
	} {
		if got := refusal.Immutable(tt.err); got != tt.want {
			t.Errorf("%s: Immutable(%v) = %t, want %t", tt.reason, tt.err, got, tt.want)
		}
	}
}

func TestLimitOf(t *testing.T) {
	limits := &corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypePod, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}},
		{
			Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
			Min: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
		},
	}}}
	for _, tt := range []struct {
		reason, text, want string
	}{
		{reason: "above a maximum", text: "maximum memory usage per Container is 64Mi, but limit is 128Mi", want: "spec.limits[1].max.memory"},
		{reason: "of all containers of a pod", text: "maximum memory usage per Pod is 64Mi, but limit is 128Mi", want: "spec.limits[0].max.memory"},
		{reason: "below a minimum, over two lines", text: "minimum cpu usage per Container is 100m,\nbut request is 10m", want: "spec.limits[1].min.cpu"},
		{reason: "above a default", text: "must be less than or equal to memory limit of 64Mi", want: "spec.limits[1].default.memory"},
		{reason: "of a LimitRange that has changed", text: "maximum memory usage per Container is 32Mi, but limit is 64Mi"},
		{reason: "none", text: "exceeded quota: small"},
	} {
		limit, found := refusal.LimitOf(tt.text)
		if got := limit.FieldIn(limits); got != tt.want || found == strings.Contains(tt.text, "quota") {
			t.Errorf("%s: LimitOf(%q) = %+v, %t in %q, want %q", tt.reason, tt.text, limit, found, got, tt.want)
		}
	}
}

// FuzzOf checks that no text of another system ends the process, and that a reason does not depend on what
// follows the text.
func FuzzOf(f *testing.F) {
	for _, tt := range texts {
		f.Add(tt.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		limit, found := refusal.LimitOf(text)
		if found != (limit.Field != "") {
			t.Errorf("LimitOf(%q) = %+v, %t", text, limit, found)
		}
		if name := refusal.Webhook(text); !strings.Contains(text, name) {
			t.Errorf("Webhook(%q) = %q, which the text does not have", text, name)
		}
		refusal.Of(text)
	})
}
