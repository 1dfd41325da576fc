package bundles

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeConstraint(t *testing.T) {
	gvk := `{"gvk":{"group":"g","version":"v1","kind":"K"}}`
	for name, test := range map[string]struct {
		reason, value string
		want          *Constraint
		wantErr       string
	}{
		"Alone": {
			reason: "an API", value: gvk,
			want: &Constraint{GVK: &GVK{Group: "g", Version: "v1", Kind: "K"}},
		},
		"Compound": {
			reason: "lists hold constraints",
			value:  `{"failureMessage":"why","all":{"constraints":[` + gvk + `,{"cel":{"rule":"true"}}]}}`,
			want: &Constraint{FailureMessage: "why", All: &ConstraintList{Constraints: []Constraint{
				{GVK: &GVK{Group: "g", Version: "v1", Kind: "K"}}, {CEL: &CELConstraint{Rule: "true"}},
			}}},
		},
		"Unknown": {reason: "what is not understood is no constraint", value: `{"some":1}`, wantErr: `decoding value: json: unknown field "some"`},
		"Behind":  {reason: "one value", value: gvk + gvk, wantErr: "decoding value: there is more text behind the JSON"},
		"Type": {
			reason: "errors are worded for authors", value: `{"package":[]}`,
			wantErr: `decoding value: wrong type: field "package" must be an object, found array`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeConstraint([]byte(test.value))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, diff)
			}
			if (err == nil) != (test.wantErr == "") || err != nil && err.Error() != test.wantErr {
				t.Errorf("%s: error %v, want %q", test.reason, err, test.wantErr)
			}
			if err == nil && got.Alternatives() != 1 {
				t.Errorf("%s: %d alternatives", test.reason, got.Alternatives())
			}
		})
	}
}
