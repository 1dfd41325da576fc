package bundleimage

import (
	"errors"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/bundleimage/nodepull"
	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/test/openshiftobjects"
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

// find makes policies read one ClusterImagePolicy with a scope; none if the scope is empty.
func find(t *testing.T, policies *imagepolicy.Policies, scope string) {
	t.Helper()
	cluster := &openshiftobjects.Reader{}
	if scope != "" {
		cluster.Specs = openshiftobjects.Scopes(scope)
	}
	policies.Found(t.Context(), cluster, openshiftobjects.Checked(discovery.Installed))
	if problem := policies.Problem(); problem != "" {
		t.Fatal(problem)
	}
}

// causeOf returns the reason and the cause of the error of an image; both are empty for nil.
func causeOf(err error) (image.Reason, string) {
	if known, ok := errors.AsType[*image.Error](err); ok {
		return known.Reason, known.Err.Error()
	}
	if err != nil {
		return "", err.Error()
	}
	return "", ""
}

// TestClusterImagePolicy asks for an image that the registry has, while a ClusterImagePolicy has a scope: only nodes check
// its signature.
func TestClusterImagePolicy(t *testing.T) {
	for name, test := range map[string]struct {
		mode  nodepull.Mode
		scope string // HOST is the registry; empty for none
		rule  string
		pulls int
		want  image.Reason
		cause string // HOST is the registry, and DIR the directory with the rule
	}{
		"AutoCovered": {nodepull.Auto, "HOST", "", 1, "", ""},
		"AutoOther":   {nodepull.Auto, "other.test", "", 0, "", ""},
		"AutoNone":    {nodepull.Auto, "", "", 0, "", ""},
		"AutoRule":    {nodepull.Auto, "HOST", "  require: none", 0, "", ""},
		"AutoReject": {
			nodepull.Auto, "HOST", "  require: reject", 0,
			image.ReasonPolicyRefused, "it is not allowed by the rule for prefix HOST (DIR key verification.yaml, line 2)",
		},
		"SupervisorCovered": {
			nodepull.Supervisor, "HOST", "", 0,
			image.ReasonPolicyNotSupported, "only nodes may pull it by scope HOST of ClusterImagePolicy acme; nodes do not try, because of --image-pull",
		},
		"SupervisorOther": {nodepull.Supervisor, "other.test", "", 0, "", ""},
		"NodeCovered":     {nodepull.Node, "HOST", "", 1, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSignedBed(t)
			if test.rule != "" {
				s.require(test.rule)
			}
			policies := imagepolicy.New(s.policyDir)
			find(t, policies, strings.ReplaceAll(test.scope, "HOST", s.host()))
			n := newNodes(t, lampFiles())
			c := s.started(func(o *Options) {
				n.options(test.mode)(o)
				o.Policies = policies
			})
			reference, _ := s.push("lamp:v1", s.bundle())
			err := s.content(c, request(reference, "user"))
			want := strings.NewReplacer("HOST", s.host(), "DIR", s.policyDir).Replace(test.cause)
			if reason, cause := causeOf(err); reason != test.want || cause != want || n.pulls() != test.pulls {
				t.Errorf("%v after %d pulls by nodes, want %s: %s and %d", err, n.pulls(), test.want, want, test.pulls)
			}
		})
	}
}

// TestClusterImagePolicyForCachedContent has content that the supervisor pulled before a ClusterImagePolicy came.
func TestClusterImagePolicyForCachedContent(t *testing.T) {
	s := newSignedBed(t)
	policies := imagepolicy.New(s.policyDir)
	policies.AwaitNodePolicies()
	find(t, policies, "")
	n := newNodes(t, lampFiles())
	c := s.started(func(o *Options) {
		n.options(nodepull.Auto)(o)
		o.Policies = policies
	})
	reference, _ := s.push("lamp:v1", s.bundle())
	for i, scope := range []string{"", s.host(), s.host(), ""} {
		find(t, policies, scope)
		if err := s.content(c, request(reference, "user")); err != nil {
			t.Fatal(err)
		}
		if want := min(i, 1); n.pulls() != want {
			t.Errorf("%d: %d pulls by nodes with scope %q, want %d", i, n.pulls(), scope, want)
		}
	}
}
