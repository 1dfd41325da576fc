package signature_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/chandlery/chandlery/bundles/image/signature"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/test/signing"
)

// files returns the keys of a ConfigMap with rules, a public key and a trusted root.
func files(tb testing.TB, rules string) map[string][]byte {
	tb.Helper()
	key, err := signing.NewKey()
	if err != nil {
		tb.Fatal(err)
	}
	public, err := key.PEM()
	if err != nil {
		tb.Fatal(err)
	}
	instance, err := signing.NewSigstore()
	if err != nil {
		tb.Fatal(err)
	}
	trusted, err := instance.TrustedRoot()
	if err != nil {
		tb.Fatal(err)
	}
	all := map[string][]byte{
		sources.KeyVerification: []byte(rules), "acme.pub": public, "root.json": trusted, "double.pub": slices.Concat(public, public),
	}
	for key, text := range map[string]string{"bad.pub": "none", "bad.json": "{"} {
		if strings.Contains(rules, key) {
			all[key] = []byte(text)
		}
	}
	return all
}

// TestTheLongestPrefixCounts looks for the rules of images.
func TestTheLongestPrefixCounts(t *testing.T) {
	policy, err := signature.Parse("ConfigMap a/b", files(t, `
rules:
- prefix: quay.io/acme
  keys: [acme.pub]
- prefix: quay.io/acme/open
  require: none
- prefix: quay.io/acme/lamp
  for: [bundles]
  require: reject
- prefix: docker.io
  require: node
- prefix: localhost:5000
  require: reject
- prefix: secure.test:443
  require: reject
- prefix: docker.io/acme/
  require: reject
- prefix: ""
  for: [catalogs]
  require: reject
`))
	if err != nil {
		t.Fatal(err)
	}
	const digest = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for _, tt := range []struct {
		image string
		use   signature.Use
		want  string
		needs signature.Requirement
	}{
		{"quay.io/acme/x:1", signature.Bundles, "quay.io/acme", signature.RequireSignature},
		{"index.docker.io:443/acme/x", signature.Bundles, "docker.io/acme", signature.RequireReject},
		{"registry-1.docker.io/acme/x", signature.Bundles, "docker.io/acme", signature.RequireReject},
		{"quay.io:443/acme/x", signature.Bundles, "quay.io/acme", signature.RequireSignature},
		{"QUAY.io/acme/x", signature.Bundles, "quay.io/acme", signature.RequireSignature},
		{"secure.test/x", signature.Bundles, "secure.test", signature.RequireReject},
		{"quay.io/acme:1", signature.Catalogs, "quay.io/acme", signature.RequireSignature},
		{"quay.io/acme/x" + digest, signature.Catalogs, "quay.io/acme", signature.RequireSignature},
		{"quay.io/acme/open/a/b", signature.Bundles, "quay.io/acme/open", signature.RequireNone},
		{"quay.io/acme/opener", signature.Bundles, "quay.io/acme", signature.RequireSignature},
		{"quay.io/acmes/x", signature.Bundles, "-", ""},
		{"quay.io/acmes/x", signature.Catalogs, "", signature.RequireReject},
		{"quay.io/acme/lamp:1", signature.Bundles, "quay.io/acme/lamp", signature.RequireReject},
		{"quay.io/acme/lamp:1", signature.Catalogs, "quay.io/acme", signature.RequireSignature},
		{"nginx", signature.Bundles, "docker.io", signature.RequireNode},
		{"index.docker.io/library/nginx", signature.Bundles, "docker.io", signature.RequireNode},
		{"localhost:5000/x", signature.Bundles, "localhost:5000", signature.RequireReject},
		{"localhost:50001/x", signature.Bundles, "-", ""},
	} {
		ref, err := name.ParseReference(tt.image)
		if err != nil {
			t.Fatal(err)
		}
		rule := policy.For(ref, tt.use)
		switch {
		case rule == nil && tt.want != "-", rule != nil && (rule.Prefix != tt.want || rule.Requirement != tt.needs):
			t.Errorf("rule for %s of %s: %v, want prefix %q with %s", tt.image, tt.use, rule, tt.want, tt.needs)
		}
	}
}

// TestInvalidPolicies checks that a policy is refused as a whole, with the line and what to do.
func TestInvalidPolicies(t *testing.T) {
	for reason, tt := range map[string]struct {
		rules, want string
		line        int
	}{
		"no YAML":                       {rules: "rules: [", want: "is not YAML"},
		"no map":                        {rules: "- a", want: "a map is expected here", line: 1},
		"no rules":                      {rules: "rules: []", want: `field "rules" is no list with items`, line: 1},
		"empty":                         {rules: "", want: "has no rules"},
		"an unknown field":              {rules: "rules:\n- prefix: quay.io\n  kays: [acme.pub]", want: `field "kays" is unknown; use prefix, for`, line: 3},
		"a field twice":                 {rules: "rules:\n- prefix: quay.io\n  prefix: quay.io", want: "is there twice", line: 3},
		"an unknown requirement":        {rules: "rules:\n- prefix: quay.io\n  require: notation", want: `require: "notation" is unknown; write signature, none, node or reject`, line: 3},
		"no prefix":                     {rules: "rules:\n- require: none", want: "a rule has no prefix", line: 2},
		"a tag":                         {rules: "rules:\n- prefix: quay.io/acme:1\n  require: none", want: "has a tag or a digest", line: 2},
		"no registry":                   {rules: "rules:\n- prefix: acme/lamp\n  require: none", want: "is no start of a repository", line: 2},
		"a wildcard":                    {rules: "rules:\n- prefix: \"*.quay.io\"\n  require: none", want: "is no start of a repository", line: 2},
		"a URL":                         {rules: "rules:\n- prefix: https://quay.io/acme\n  require: none", want: "is no start of a repository", line: 2},
		"two slashes":                   {rules: "rules:\n- prefix: quay.io/acme//x\n  require: none", want: "is no start of a repository", line: 2},
		"two documents":                 {rules: "rules:\n- prefix: quay.io\n  require: none\n---\nrules:\n- prefix: \"\"\n  require: reject", want: "has more than one document"},
		"a log that is not needed":      {rules: "rules:\n- prefix: quay.io\n  require: none\n  transparencyLog: true", want: "without signers has a transparencyLog", line: 4},
		"an alternative without start":  {rules: "rules:\n- prefix: quay.io\n  identities:\n  - issuer: i\n    subjectRegExp: ^a|https://evil\n  trustedRoot: root.json", want: "does not start with ^ in each", line: 5},
		"no signer":                     {rules: "rules:\n- prefix: quay.io", want: "neither keys nor identities", line: 2},
		"a signer that is not needed":   {rules: "rules:\n- prefix: quay.io\n  require: none\n  keys: [acme.pub]", want: "remove either", line: 3},
		"a key that is missing":         {rules: "rules:\n- prefix: quay.io\n  keys: [other.pub]", want: `names "other.pub", which does not exist; add the key`, line: 3},
		"a key that is none":            {rules: "rules:\n- prefix: quay.io\n  keys: [bad.pub]", want: "bad.pub has no usable public key", line: 3},
		"an unknown use":                {rules: "rules:\n- prefix: quay.io\n  for: [pods]\n  require: none", want: `"pods" is no use of images`, line: 3},
		"two rules for a prefix":        {rules: "rules:\n- prefix: quay.io\n  require: none\n- prefix: quay.io\n  for: [bundles]\n  require: reject", want: "has two rules", line: 4},
		"an identity without a root":    {rules: "rules:\n- prefix: quay.io\n  identities:\n  - issuer: i\n    subject: s", want: "has no trustedRoot", line: 2},
		"an identity without an issuer": {rules: "rules:\n- prefix: quay.io\n  identities:\n  - subject: s\n  trustedRoot: root.json", want: "needs an issuer and a subject", line: 4},
		"a pattern without a start":     {rules: "rules:\n- prefix: quay.io\n  identities:\n  - issuer: i\n    subjectRegExp: acme\n  trustedRoot: root.json", want: "does not start with ^", line: 5},
		"a pattern that is none":        {rules: "rules:\n- prefix: quay.io\n  identities:\n  - issuer: i\n    subjectRegExp: ^(\n  trustedRoot: root.json", want: "cannot be used", line: 5},
		"a root that is none":           {rules: "rules:\n- prefix: quay.io\n  keys: [acme.pub]\n  trustedRoot: bad.json", want: "is no trusted root", line: 4},
		"a log without a root":          {rules: "rules:\n- prefix: quay.io\n  keys: [acme.pub]\n  transparencyLog: true", want: "has no trustedRoot", line: 2},
		"a root that is not needed":     {rules: "rules:\n- prefix: quay.io\n  require: none\n  trustedRoot: root.json", want: "without signers has a trustedRoot", line: 2},
		"a log that is no bool":         {rules: "rules:\n- prefix: quay.io\n  keys: [acme.pub]\n  transparencyLog: maybe", want: "neither true nor false", line: 4},
		"an alias":                      {rules: "rules:\n- &a\n  prefix: quay.io\n  require: none\n- *a", want: "a map is expected here", line: 5},
		"many values":                   {rules: "rules: [" + strings.Repeat("{},", 30_000) + "]", want: "at most 50000 are allowed"},
		"many keys":                     {rules: "rules:\n- prefix: quay.io\n  keys: [" + strings.Repeat("acme.pub,", 50) + "double.pub]", want: "has more than 50 items", line: 3},
		"many keys in files":            {rules: "rules:\n- prefix: quay.io\n  keys: [" + strings.Repeat("double.pub,", 26) + "]", want: "a rule has more than 50 public keys", line: 3},
		"a large pattern": {
			rules: "rules:\n- prefix: quay.io\n  identities:\n  - issuer: i\n    subjectRegExp: ^" + strings.Repeat("a{1000}", 40) + "\n  trustedRoot: root.json", want: "too large, with their repetitions", line: 5,
		},
		"a number": {rules: "rules:\n- prefix: 1\n  require: none", want: `field "prefix" is no text`, line: 2},
	} {
		policy, err := signature.Parse("ConfigMap a/b", files(t, tt.rules))
		invalid, ok := errors.AsType[*sources.InvalidError](err)
		if policy != nil || !ok || invalid.Line != tt.line || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "ConfigMap a/b key verification.yaml") {
			t.Errorf("%s: policy %v, error %v, want line %d and %q", reason, policy, err, tt.line, tt.want)
		}
	}
}

// TestFilesWithoutEffect checks that a key or a policy in another format is not accepted as if it were applied.
func TestFilesWithoutEffect(t *testing.T) {
	const rules = "rules:\n- prefix: quay.io\n  require: reject"
	for reason, tt := range map[string]struct{ rules, key, text, want string }{
		"a policy of containers":    {rules: rules, key: "policy.json", text: `{"default":[{"type":"reject"}]}`, want: "key policy.json: is neither a public key nor a trusted root of Sigstore"},
		"no key":                    {rules: rules, key: "other.pub", text: "none", want: "key other.pub: is neither"},
		"a policy, and no rules":    {key: "policy.json", text: "{}", want: "key policy.json: has no effect without key verification.yaml; add the rules"},
		"mirrors":                   {key: "registries.conf"},
		"mirrors and rules":         {rules: rules, key: "registries.conf"},
		"a key that no rule needs":  {rules: rules, key: "next.pub", text: string(files(t, "")["acme.pub"])},
		"a root that no rule needs": {rules: rules, key: "next.json", text: string(files(t, "")["root.json"])},
	} {
		keys := map[string][]byte{tt.key: []byte(tt.text)}
		if tt.rules != "" {
			keys[sources.KeyVerification] = []byte(tt.rules)
		}
		policy, err := signature.Parse("ConfigMap a/b", keys)
		switch {
		case tt.want == "" && err != nil, tt.want != "" && (err == nil || policy != nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: policy %v, error %v, want %q", reason, policy, err, tt.want)
		}
	}
}

// TestTheIdentityOfARule checks that what a rule accepts changes its ID, and nothing else.
func TestTheIdentityOfARule(t *testing.T) {
	keys := files(t, "")
	other := files(t, "")
	ids := map[string]string{}
	ref, err := name.ParseReference("quay.io/acme/x")
	if err != nil {
		t.Fatal(err)
	}
	for reason, tt := range map[string]struct{ rules, key string }{
		"as it is":         {rules: "rules:\n- prefix: quay.io\n  keys: [acme.pub]"},
		"another line":     {rules: "rules:\n# a comment\n- prefix: quay.io/acme\n  keys: [acme.pub]"},
		"another key":      {rules: "rules:\n- prefix: quay.io\n  keys: [acme.pub]", key: "other"},
		"a log":            {rules: "rules:\n- prefix: quay.io\n  keys: [acme.pub]\n  transparencyLog: true\n  trustedRoot: root.json"},
		"an identity":      {rules: "rules:\n- prefix: quay.io\n  identities: [{issuer: i, subject: s}]\n  trustedRoot: root.json"},
		"another identity": {rules: "rules:\n- prefix: quay.io\n  identities: [{issuer: i, subject: t}]\n  trustedRoot: root.json"},
	} {
		all := map[string][]byte{sources.KeyVerification: []byte(tt.rules), "acme.pub": keys["acme.pub"], "root.json": keys["root.json"]}
		if tt.key != "" {
			all["acme.pub"] = other["acme.pub"]
		}
		policy, err := signature.Parse("a", all)
		if err != nil {
			t.Fatal(err)
		}
		ids[reason] = policy.For(ref, signature.Bundles).ID()
	}
	if ids["as it is"] != ids["another line"] {
		t.Error("another line changes what identifies a rule")
	}
	delete(ids, "another line")
	seen := map[string]string{}
	for reason, id := range ids {
		if seen[id] != "" {
			t.Errorf("%s and %s have the same ID", reason, seen[id])
		}
		seen[id] = reason
	}
}

// FuzzParse checks that no text ends the program, and that an error names the key.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "rules: []", "rules:\n- prefix: quay.io/acme\n  keys: [acme.pub]", "rules:\n- prefix: \"\"\n  require: reject\n  for: [bundles]",
		"rules:\n- prefix: a.b\n  identities: [{issuer: i, subjectRegExp: ^x}]\n  trustedRoot: root.json\n  transparencyLog: false", "a: &a [*a]", "{", "- 1",
	} {
		f.Add([]byte(seed))
	}
	keys := files(f, "")
	ref, err := name.ParseReference("quay.io/acme/x")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, rules []byte) {
		all := map[string][]byte{sources.KeyVerification: rules, "acme.pub": keys["acme.pub"], "root.json": keys["root.json"]}
		policy, err := signature.Parse("the file", all)
		if err != nil {
			if policy != nil || !strings.HasPrefix(err.Error(), "the file key verification.yaml") {
				t.Errorf("policy %v, error %v", policy, err)
			}
			return
		}
		policy.For(ref, signature.Bundles)
	})
}
