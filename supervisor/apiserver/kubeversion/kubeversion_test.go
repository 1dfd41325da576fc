package kubeversion

import "testing"

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		reason, text, want string
	}{
		"Plain":   {"as Kubernetes has it", "v1.36.3", "1.36.3"},
		"Vendor":  {"what vendors append is no pre-release", "v1.36.3-gke.100", "1.36.3"},
		"Build":   {"nor is a build", "v1.36.3+k3s1", "1.36.3"},
		"Runtime": {"a runtime", "2.1.4", "2.1.4"},
		"Short":   {"two numbers", "1.33", "1.33.0"},
		"Tilde":   {"of a distribution", "1.7.2~ds1", "1.7.2"},
		"Long":    {"more than three numbers", "1.2.3.4", "1.2.3"},
		"Open":    {"cut short", "1.30.", "1.30.0"},
		"Words":   {"none", "devel", ""},
		"Empty":   {"nothing", "", ""},
		"Huge":    {"no number that there is", "99999999999999999999999.1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.text)
			if (err != nil) != (test.want == "") || err == nil && got.String() != test.want {
				t.Errorf("%s: got %s, %v", test.reason, got, err)
			}
		})
	}
}

func TestAtLeast(t *testing.T) {
	for name, test := range map[string]struct {
		reason, text string
		want         bool
	}{
		"Same":  {"the version itself", "v1.30.0", true},
		"Newer": {"a later one", "v1.31", true},
		"Major": {"a later one", "v2.0.0", true},
		"Older": {"an earlier one", "v1.29.9", false},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := Parse(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := AtLeast(v, 1, 30); got != test.want {
				t.Errorf("%s: %v", test.reason, got)
			}
		})
	}
}
