package console

import (
	"errors"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/chandlery/chandlery/supervisor/explain"
)

// MissingAPI returns an error about the API operators.coreos.com, which the cluster lacks, with the remedy and the
// code [Negative].
func MissingAPI(err error) error {
	return &Coded{Code: Negative, Err: fmt.Errorf("%w; the cluster has no API %s: install it with '%s'", err, operatorsv1alpha1.GroupName, explain.InstallAPI)}
}

// withMissingAPI adds the remedy to an error that a request returned because the cluster lacks operators.coreos.com. It
// returns other errors unchanged.
func withMissingAPI(err error) error {
	var coded *Coded
	if errors.As(err, &coded) || missingGroup(err) != operatorsv1alpha1.GroupName {
		return err
	}
	return MissingAPI(err)
}

// missingGroup returns the API group that the cluster lacks according to an error; empty for other errors.
func missingGroup(err error) string {
	if kind, is := errors.AsType[*apimeta.NoKindMatchError](err); is {
		return kind.GroupKind.Group
	}
	if resource, is := errors.AsType[*apimeta.NoResourceMatchError](err); is {
		return resource.PartialResource.Group
	}
	return ""
}
