package inventory

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDifference(t *testing.T) {
	before := Objects{"Lamp a/one": "1", "Lamp a/two": "2", "Lamp b/three": "3"}
	for name, c := range map[string]struct {
		now      Objects
		expected map[string]bool
		want     string
	}{
		"None":               {now: Objects{"Lamp a/one": "1", "Lamp a/two": "2", "Lamp b/three": "3"}},
		"Left":               {now: Objects{"Lamp a/one": "1", "Lamp a/two": "2", "Lamp b/three": "3", "Lamp b/four": "4"}, want: "left over: Lamp b/four 4"},
		"Changed":            {now: Objects{"Lamp a/one": "5", "Lamp a/two": "2", "Lamp b/three": "3"}, want: "changed: Lamp a/one from 1 to 5"},
		"Gone":               {now: Objects{"Lamp a/one": "1", "Lamp a/two": "2"}, want: "gone: Lamp b/three"},
		"Expected":           {now: Objects{"Lamp a/one": "1", "Lamp a/two": "2", "Lamp b/three": "3", "Lamp b/four": "4"}, expected: map[string]bool{"Lamp b/four": true}},
		"ExpectedAndNotCome": {now: before, expected: map[string]bool{"Lamp b/four": true}, want: "gone, though it ought to stay: Lamp b/four"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Difference(before, c.now, c.expected); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestAbout finds a word in names and in metadata.
func TestAbout(t *testing.T) {
	c := Objects{"Lamp shop/one": "", "Lamp two": `{"owner":"shop"}`, "Lamp three": ""}
	if got := Difference(Objects{"Lamp shop/one": "", "Lamp two": `{"owner":"shop"}`}, c.About("shop"), nil); got != "" {
		t.Error(got)
	}
}

// TestMarks checks that each kind of metadata is found, and that an empty value is not.
func TestMarks(t *testing.T) {
	plain := marks(&metav1.PartialObjectMetadata{})
	for name, meta := range map[string]metav1.ObjectMeta{
		"UID": {UID: "1"}, "Label": {Labels: map[string]string{"a": ""}}, "Annotation": {Annotations: map[string]string{"a": "b"}},
		"Finalizer": {Finalizers: []string{"a"}}, "Owner": {OwnerReferences: []metav1.OwnerReference{{Kind: "Lamp", Name: "a"}}},
	} {
		if marks(&metav1.PartialObjectMetadata{ObjectMeta: meta}) == plain {
			t.Errorf("%s is not seen", name)
		}
	}
	if empty := marks(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": ""}}}); empty != marks(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}) {
		t.Errorf("a claim of nothing is seen: %s", empty)
	}
}
