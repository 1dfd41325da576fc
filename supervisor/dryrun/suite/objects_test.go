package suite_test

import (
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// metaList returns the versions of the objects in a list, by their types and names.
func metaList(list client.ObjectList) (map[string]string, error) {
	objects, err := apimeta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, o := range objects {
		object, err := apimeta.Accessor(o)
		if err != nil {
			return nil, err
		}
		out[fmt.Sprintf("%T %s", o, object.GetName())] = object.GetResourceVersion()
	}
	return out, nil
}
