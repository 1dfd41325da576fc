package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TakeOver does what Over does to an object that belongs to one version at a time: what
// an earlier write said of its owner goes, unless u says it too.
func TakeOver(ctx context.Context, c client.Client, u, live *unstructured.Unstructured) (Result, error) {
	mine, err := adopted(ctx, c, u, live)
	if err != nil {
		return "", err
	}
	wanted := u.DeepCopy()
	wanted.SetResourceVersion(mine.GetResourceVersion())
	if err := write(ctx, c, wanted); err != nil {
		return "", err
	}
	return changed(live, wanted), nil
}
