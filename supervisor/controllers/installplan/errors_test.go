package installplan

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// TestContentEndsAPlan checks which errors of manifests, images and catalogs end a plan, and when.
func TestContentEndsAPlan(t *testing.T) {
	const timeout = time.Minute
	of := func(reason image.Reason) error {
		return &image.Error{Reference: "registry.example/lamp", Reason: reason, Err: errors.New("no")}
	}
	for _, tt := range []struct {
		err          error
		before, then bool // within and after the retry window
	}{
		{err: plansteps.ErrManifest, before: true, then: true},
		{err: of(image.ReasonInvalid), before: true, then: true},
		{err: of(image.ReasonReference), before: true, then: true},
		{err: of(image.ReasonNotFound)},
		{err: of(image.ReasonUnreachable)},
		{err: of(image.ReasonUnauthorized)},
		{err: of(image.ReasonPolicyRefused)},
		{err: status.Error(codes.NotFound, "no such bundle"), then: true},
		{err: status.Error(codes.Unknown, "no such bundle"), then: true},
		{err: status.Error(codes.Unavailable, "loading")},
		{err: status.Error(codes.DeadlineExceeded, "slow")},
		{err: errors.New("no registry client established")},
	} {
		wrapped := fmt.Errorf("reading: %w", tt.err)
		if before, then := terminal(wrapped, timeout-1, timeout), terminal(wrapped, timeout, timeout); before != tt.before || then != tt.then {
			t.Errorf("%v ends a plan at once: %v, after the window: %v; want %v, %v", tt.err, before, then, tt.before, tt.then)
		}
	}
}

// TestAdviceNamesWhoWasRefused refuses permissions to the account of an OperatorGroup, and to the
// supervisor.
func TestAdviceNamesWhoWasRefused(t *testing.T) {
	limited := &account{name: types.NamespacedName{Namespace: "ops", Name: "installer"}, group: types.NamespacedName{Namespace: "ops", Name: "group"}}
	forbidden := apierrors.NewForbidden(configMaps, "settings", errors.New("no"))
	var added plansteps.Kinds
	if err := added.Set("shop.example/Widget,shop.example/Sign:cluster"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		reason, kind string
		err          error
		account      *account
		want         string
	}{
		{reason: "the account applies", kind: "ConfigMap", err: forbidden, account: limited, want: "grant ServiceAccount ops/installer this permission"},
		{reason: "the supervisor reads", kind: "ConfigMap", err: fmt.Errorf("%w it: %w", errOwnRead, forbidden), account: limited, want: "grant the supervisor this permission"},
		{reason: "the supervisor defines", kind: kindCRD, err: forbidden, account: limited, want: "grant the supervisor this permission"},
		{reason: "there is no account", kind: "ConfigMap", err: forbidden, want: "grant the supervisor this permission; "},
		{reason: "there is no account for an added kind", kind: "Widget", err: forbidden, want: "grant the supervisor this permission: supervisor rbac --bundle-kind=shop.example/Sign:cluster,shop.example/Widget | kubectl apply -f -; "},
		{reason: "the account applies an added kind", kind: "Widget", err: forbidden, account: limited, want: "grant ServiceAccount ops/installer this permission"},
		{reason: "the version of a definition is unknown", kind: kindCRD, err: &definitionVersionError{version: "v2"}, want: "ask the author of a.v1 for a bundle"},
	} {
		e := &execution{account: tt.account, crds: &crdApplier{}, content: &content{kinds: added}}
		step := &operatorsv1alpha1.Step{Resolving: "a.v1", Resource: operatorsv1alpha1.StepResource{Kind: tt.kind, Name: "a"}}
		failed := &stepError{step: step, err: tt.err}
		if advice := e.remedyFor(failed); !strings.HasPrefix(advice, tt.want) || strings.Contains(failed.Error(), tt.want) {
			t.Errorf("%s: error %v, advice %q, want %s only there", tt.reason, failed, advice, tt.want)
		}
	}
}

// TestDefinitionVersion has steps for CustomResourceDefinitions of versions other than v1.
func TestDefinitionVersion(t *testing.T) {
	for version, tt := range map[string]struct{ message, reason string }{
		"v1beta1": {
			"api-server resource not found installing CustomResourceDefinition lamps.example: GroupVersionKind apiextensions.k8s.io/v1beta1, Kind=CustomResourceDefinition not found",
			api.ReasonAPINotFound,
		},
		"v2": {"error applying CustomResourceDefinition lamps.example of lamp.v1: CRD APIVersion from manifest not supported: v2", api.ReasonContentInvalid},
	} {
		step := &operatorsv1alpha1.Step{Resolving: "lamp.v1", Resource: operatorsv1alpha1.StepResource{
			Group: groupAPIExtensions, Version: version, Kind: kindCRD, Name: "lamps.example",
			Manifest: `{"apiVersion":"apiextensions.k8s.io/` + version + `","kind":"CustomResourceDefinition","metadata":{"name":"lamps.example"}}`,
		}}
		err := (&execution{namespace: "ops", plan: "install-a", content: &content{}}).checkKind(step)
		failed := &stepError{step: step, err: err}
		cause := causeOf(failed, 0)
		if !strings.HasPrefix(failed.Error(), tt.message) || cause.Reason != tt.reason || !cause.Final {
			t.Errorf("%s: error %v, cause %+v", version, failed, cause)
		}
	}
}

// TestCauseOfForbiddenKind checks that the remedy names the argument that allows a kind, with its scope, and no argument
// for a kind that cannot be added.
func TestCauseOfForbiddenKind(t *testing.T) {
	served := apimeta.NewDefaultRESTMapper(nil)
	served.Add(schema.GroupVersionKind{Group: "shop.example", Version: "v1", Kind: "Sign"}, apimeta.RESTScopeRoot)
	objects := &objectApplier{own: fake.NewClientBuilder().WithRESTMapper(served).Build()}
	const author, administrator = "ask the author of lamp.v1 to remove it", ", or ask an administrator to run the supervisor with "
	for gk, remedy := range map[schema.GroupKind]string{
		{Group: "shop.example", Kind: "Gadget"}: author + administrator + "--bundle-kind=shop.example/Gadget",
		{Group: "shop.example", Kind: "Sign"}:   author + administrator + "--bundle-kind=shop.example/Sign:cluster",
		{Kind: "Pod"}:                           author,
		{Kind: "LimitRange"}:                    author,
	} {
		step := &operatorsv1alpha1.Step{Resolving: "lamp.v1", Resource: operatorsv1alpha1.StepResource{Group: gk.Group, Version: "v1", Kind: gk.Kind, Name: "g"}}
		err := (&execution{content: &content{}, objects: objects}).refuseKind(gk.WithVersion("v1"), step)
		cause := causeOf(&stepError{step: step, err: err}, 0)
		if cause.Remedy != remedy || cause.Reason != api.ReasonKindNotAllowed || !strings.HasSuffix(err.Error(), "; "+remedy) {
			t.Errorf("%s: error %v, cause %+v", gk, err, cause)
		}
	}
}
