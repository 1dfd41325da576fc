package copiedcsv

import (
	"errors"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestRecordDescribes(t *testing.T) {
	for name, tc := range map[string]struct {
		reason       string
		uid, version string
		want         bool
	}{
		"Same":     {"what was seen", "u", "20", true},
		"Earlier":  {"a cache is behind", "u", "19", true},
		"FarBack":  {"versions are numbers", "u", "9", true},
		"Later":    {"another client wrote since", "u", "21", false},
		"Longer":   {"versions are numbers", "u", "100", false},
		"Other":    {"a new object under the name", "v", "20", false},
		"NoNumber": {"what cannot be compared is not known", "u", "x", false},
	} {
		r := record{uid: "u", version: "20"}
		meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: types.UID(tc.uid), ResourceVersion: tc.version}}
		if got := r.describes(meta); got != tc.want {
			t.Errorf("%s: covers(%s, %s) = %t, want %t: %s", name, tc.uid, tc.version, got, tc.want, tc.reason)
		}
	}
}

func TestFailurePausesGrow(t *testing.T) {
	h := knowing(fingerprint{})
	now, s := noon(), step{action: createCopy, namespace: "pantry"}
	for i, want := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300} {
		h.fail(s, now, errors.New("boom"))
		if got := h.retryIn(s, now); got != time.Duration(want)*time.Second {
			t.Errorf("after %d failures the pause is %s, want %s", i+1, got, time.Duration(want)*time.Second)
		}
	}
	if got := h.retryIn(s, now.Add(backoff.Max)); got != 0 {
		t.Errorf("when the time has come there is a pause of %s", got)
	}
	if got := h.retryIn(step{action: createCopy, namespace: "cellar"}, now); got != 0 {
		t.Errorf("another namespace waits %s", got)
	}
	h.pruneFailures([]step{s})
	if len(h.failures) != 1 {
		t.Error("a failure was forgotten that is waited for")
	}
	h.pruneFailures(nil)
	if len(h.failures) != 0 {
		t.Error("the failure of an unneeded step was kept")
	}
}

func TestBindingWaitsForItsRole(t *testing.T) {
	h := knowing(fingerprint{})
	h.fail(step{action: applyRole, namespace: "pantry", name: "r"}, noon(), errors.New("boom"))
	binding := &rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Name: "r"}}
	if !h.roleFailed(step{action: applyBinding, namespace: "pantry", name: "b", binding: binding}) {
		t.Error("it is bound to it")
	}
	if h.roleFailed(step{action: applyBinding, namespace: "cellar", name: "b", binding: binding}) {
		t.Error("it is held up in another namespace")
	}
}

func TestPrune(t *testing.T) {
	h := knowing(fingerprint{}, "pantry", "cellar")
	h.records["garden"] = record{at: noon()}
	h.prune(seen([]string{""}, []string{"pantry"}))
	if _, ok := h.records["pantry"]; !ok {
		t.Error("the record of an existing copy was deleted")
	}
	if _, ok := h.records["cellar"]; ok {
		t.Error("a copy that is gone was kept")
	}
	if _, ok := h.records["garden"]; !ok {
		t.Error("a copy that the cache may not show yet was forgotten")
	}
}

func TestFingerprintIsMadeOnceForAVersion(t *testing.T) {
	h := knowing(fingerprint{})
	csv := kettle("")
	first, err := h.fingerprint(csv, templateOf(csv))
	if err != nil {
		t.Fatal(err)
	}
	csv.Spec.Description = "changed"
	if again, _ := h.fingerprint(csv, templateOf(csv)); again != first {
		t.Error("it was computed again for the same resource version")
	}
	csv.ResourceVersion = "11"
	if again, _ := h.fingerprint(csv, templateOf(csv)); again == first {
		t.Error("it was not computed again for another")
	}
}
