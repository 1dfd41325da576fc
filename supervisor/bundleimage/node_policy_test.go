package bundleimage

import (
	"testing"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/bundleimage/nodepull"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
)

// TestNodePullsByPolicy asks for an image that no registry has, under each kind of rule. A node pulls nothing that the
// supervisor would have to verify.
func TestNodePullsByPolicy(t *testing.T) {
	for name, test := range map[string]struct {
		mode  nodepull.Mode
		rule  string
		pulls int
		want  image.Reason
	}{
		"AutoNone":       {nodepull.Auto, "  require: none", 1, ""},
		"AutoNode":       {nodepull.Auto, "  require: node", 1, ""},
		"AutoSignature":  {nodepull.Auto, "  keys: [acme.pub]", 0, image.ReasonNotFound},
		"AutoReject":     {nodepull.Auto, "  require: reject", 0, image.ReasonPolicyRefused},
		"NodeNone":       {nodepull.Node, "  require: none", 1, ""},
		"NodeNode":       {nodepull.Node, "  require: node", 1, ""},
		"NodeSignature":  {nodepull.Node, "  keys: [acme.pub]", 0, image.ReasonPolicyRefused},
		"NodeReject":     {nodepull.Node, "  require: reject", 0, image.ReasonPolicyRefused},
		"SupervisorNode": {nodepull.Supervisor, "  require: node", 0, image.ReasonPolicyNotSupported},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSignedBed(t)
			s.require(test.rule)
			n := newNodes(t, lampFiles())
			c := s.started(func(o *Options) {
				n.options(test.mode)(o)
				o.Policies = imagepolicy.New(s.policyDir)
			})
			err := s.content(c, request(s.host()+"/lamp:v1", "user"))
			if image.ReasonOf(err) != test.want || (err == nil) != (test.want == "") || n.pulls() != test.pulls {
				t.Errorf("%v after %d pulls by nodes, want %q and %d", err, n.pulls(), test.want, test.pulls)
			}
		})
	}
}
