package imagepolicy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/signature"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
)

// TestAnInvalidPolicyIsNotUsed changes the policy of the cluster while it is in use.
func TestAnInvalidPolicyIsNotUsed(t *testing.T) {
	b := newBed(t)
	p := imagepolicy.New(b.dir)
	query := imagepolicy.Query{Image: b.image.Name(), Use: signature.Bundles}
	version := ""
	for _, tt := range []struct {
		reason, rules string
		wantRules     int
		fails         image.Reason
		problem       string
		changed       bool
	}{
		{reason: "it has never been valid", rules: "rules: [", fails: image.ReasonConfiguration, problem: "so that no images are pulled: " + b.dir + " key verification.yaml", changed: true},
		{reason: "it is corrected", rules: "rules:\n- prefix: " + b.host + "\n  keys: [acme.pub]", wantRules: 1, changed: true},
		{reason: "nothing changes", rules: "rules:\n- prefix: " + b.host + "\n  keys: [acme.pub]", wantRules: 1},
		{
			reason: "it becomes invalid", rules: "rules:\n- prefix: " + b.host + "\n  key: [acme.pub]", wantRules: 1, changed: true,
			problem: `the last valid one stays in force: ` + b.dir + ` key verification.yaml, line 3: field "key" is unknown; use prefix`,
		},
		{reason: "it has no rule for the image", rules: "rules:\n- prefix: quay.io\n  require: reject", changed: true},
		{reason: "it is removed", changed: true},
	} {
		if tt.rules == "" {
			if err := os.Remove(filepath.Join(b.dir, sources.KeyVerification)); err != nil {
				t.Fatal(err)
			}
		} else {
			b.write(sources.KeyVerification, tt.rules)
		}
		p.Check(t.Context())
		rules, err := p.Rules(query)
		if len(rules) != tt.wantRules || image.ReasonOf(err) != tt.fails {
			t.Errorf("%s: rules %v, error %v, want %d rules and reason %q", tt.reason, rules, err, tt.wantRules, tt.fails)
		}
		if problem := p.Problem(); !strings.Contains(problem, tt.problem) || (problem == "") != (tt.problem == "") {
			t.Errorf("%s: problem %q, want %q", tt.reason, problem, tt.problem)
		}
		select {
		case <-p.Changes():
			if !tt.changed {
				t.Errorf("%s: a change is reported", tt.reason)
			}
		default:
			if tt.changed {
				t.Errorf("%s: no change is reported", tt.reason)
			}
		}
		version = p.Version()
	}
	if version == "" {
		t.Error("the policy has no version")
	}
	if rules, err := (*imagepolicy.Policies)(nil).Rules(query); len(rules) != 0 || err != nil {
		t.Errorf("no policies: %v, %v", rules, err)
	}
}
