package apply

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// manager is the field manager of writes whose options name no other.
const manager = client.FieldOwner(api.FieldManager)

// UserAgent makes the API server take the name of the field manager from the user agent of the process.
const UserAgent = client.FieldOwner("")

// Create creates an object. Like the functions below, it sends one request and returns the error of the client.
func Create(ctx context.Context, c client.Writer, obj client.Object, options ...client.CreateOption) error {
	return c.Create(ctx, obj, append([]client.CreateOption{manager}, options...)...)
}

// Replace replaces an object. The error is a conflict if it has changed since obj was read.
func Replace(ctx context.Context, c client.Writer, obj client.Object, options ...client.UpdateOption) error {
	return c.Update(ctx, obj, append([]client.UpdateOption{manager}, options...)...)
}

// Apply applies an object on the server side, and updates u with the result.
func Apply(ctx context.Context, c client.Writer, u *unstructured.Unstructured, options ...client.ApplyOption) error {
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), append([]client.ApplyOption{manager}, options...)...)
}

// Patch patches an object, and updates obj with the result.
func Patch(ctx context.Context, c client.Writer, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
	return c.Patch(ctx, obj, patch, append([]client.PatchOption{manager}, options...)...)
}

// PatchStatus patches the status of an object, and updates obj with the result.
func PatchStatus(ctx context.Context, c client.StatusClient, obj client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return c.Status().Patch(ctx, obj, patch, append([]client.SubResourcePatchOption{manager}, options...)...)
}

// Review sends a review, for example a SubjectAccessReview. The API server answers in its status and stores nothing.
func Review(ctx context.Context, c client.Writer, review client.Object) error {
	return c.Create(ctx, review)
}

// MergeFromLocked returns a merge patch from an object that was read to the patched one. The error is a conflict if
// the object has changed since. A merge patch replaces lists as a whole, and would drop the changes of others.
func MergeFromLocked(read client.Object) client.Patch {
	return client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{})
}

// MergePatch is the content of a merge patch. Without metadata.resourceVersion, it has no lock.
type MergePatch map[string]any

// Type returns the type of a merge patch.
func (MergePatch) Type() types.PatchType { return types.MergePatchType }

// Data returns the content in JSON.
func (p MergePatch) Data(client.Object) ([]byte, error) { return json.Marshal(p) }
