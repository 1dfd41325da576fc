package configoverrides

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// PullSecret names a Secret, by its name alone or as pods do: {"name": "mirror"}.
type PullSecret corev1.LocalObjectReference

// UnmarshalJSON accepts both forms and no other.
func (p *PullSecret) UnmarshalJSON(text []byte) error {
	var ref struct {
		Name string `json:"name"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	into := any(&ref)
	if bytes.HasPrefix(text, []byte(`"`)) {
		into = &ref.Name
	}
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf(`imagePullSecrets: %w; each is a name or {"name": NAME}`, err)
	}
	if ref.Name == "" {
		return errors.New(`imagePullSecrets: a name is empty; each is a name or {"name": NAME}`)
	}
	p.Name = ref.Name
	return nil
}
