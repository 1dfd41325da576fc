package api_test

import (
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// TestNamesOfOperatorsCoreOSCom compares names with the constants of the Go package of operators.coreos.com.
// Package api does not import that package, since resolution would then depend on clients.
func TestNamesOfOperatorsCoreOSCom(t *testing.T) {
	for got, want := range map[string]string{
		api.LabelCopiedFrom:             operatorsv1alpha1.CopiedLabelKey,
		api.AnnotationOperatorGroup:     operatorsv1.OperatorGroupAnnotationKey,
		api.AnnotationOperatorNamespace: operatorsv1.OperatorGroupNamespaceAnnotationKey,
		api.AnnotationTargetNamespaces:  operatorsv1.OperatorGroupTargetsAnnotationKey,
		api.PrefixOperatorGroup:         operatorsv1.OperatorGroupLabelPrefix,
		api.AnnotationProvidedAPIs:      operatorsv1.OperatorGroupProvidedAPIsAnnotationKey,
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
