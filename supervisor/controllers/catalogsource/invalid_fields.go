package catalogsource

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// withSourceFields replaces refused fields of a Deployment in an error by the fields of the
// CatalogSource that they derive from.
func withSourceFields(err error) error {
	status, is := errors.AsType[*apierrors.StatusError](err)
	if !is || !apierrors.IsInvalid(err) || status.ErrStatus.Details == nil {
		return err
	}
	var refused []string
	for _, cause := range status.ErrStatus.Details.Causes {
		field := fieldOf(cause)
		if field == "" {
			return err
		}
		refused = append(refused, field+": "+cause.Message)
	}
	if len(refused) == 0 {
		return err
	}
	return fmt.Errorf("the API server refuses %s; correct it", strings.Join(refused, "; "))
}

// fieldOf returns the field of the CatalogSource that a cause refers to; empty if there is none.
func fieldOf(cause metav1.StatusCause) string {
	field, found := strings.CutPrefix(cause.Field, "spec.template.spec.")
	if !found {
		return ""
	}
	for _, name := range []string{"nodeSelector", "tolerations", "affinity", "priorityClassName"} {
		if rest, found := strings.CutPrefix(field, name); found && (rest == "" || strings.ContainsAny(rest[:1], ".[")) {
			return "spec.grpcPodConfig." + field
		}
	}
	return ""
}
