package signature

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/sigstore/sigstore-go/pkg/verify"
	"go.yaml.in/yaml/v3"

	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/bundles/internal/values"
)

// Limits of a policy.
const (
	maxPolicyBytes  = 1 << 20
	maxPolicyValues = 50_000
	maxRules        = 1000
	maxSigners      = 50
	// maxPatternSize limits the total size of the regular expressions of a policy, in bytes of text. A repetition counts as
	// often as it repeats, because the compiled form does.
	maxPatternSize = 256 << 10
)

// Parse returns the policy in the keys of a ConfigMap; nil if it has none. origin names the object in messages. All keys
// that the rules name must exist, and public keys and trusted roots without rules are invalid.
func Parse(origin string, keys map[string][]byte) (*Policy, error) {
	data, ok := keys[sources.KeyVerification]
	if !ok {
		return nil, withoutRules(origin, keys)
	}
	p := &parser{file: origin + " key " + sources.KeyVerification, files: newKeyFiles(keys)}
	if len(data) > maxPolicyBytes {
		return nil, p.invalid(nil, fmt.Sprintf("is larger than %d bytes", maxPolicyBytes), "shorten it")
	}
	if n := values.Count(data); n > maxPolicyValues {
		return nil, p.invalid(nil, fmt.Sprintf("may hold %d values, at most %d are allowed", n, maxPolicyValues), "shorten it")
	}
	var document, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, p.invalid(nil, "is not YAML: "+strings.TrimPrefix(err.Error(), "yaml: "), layoutRemedy)
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, p.invalid(nil, "has more than one document", "write all rules in one list")
	}
	policy, err := p.policy(&document)
	if err != nil {
		return nil, err
	}
	if err := checkUnused(origin, p.files); err != nil {
		return nil, err
	}
	return policy, nil
}

// withoutRules returns an error if keys are for signatures: no rule would use them.
func withoutRules(origin string, keys map[string][]byte) error {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if sources.IsForSignatures(key) {
			return &sources.InvalidError{
				File: origin + " key " + key, Problem: "has no effect without key " + sources.KeyVerification, Remedy: "add the rules, or remove the key",
			}
		}
	}
	return nil
}

// checkUnused returns an error for a file in another format, such as a policy.json of containers: nothing would apply it.
func checkUnused(origin string, files *keyFiles) error {
	for _, key := range slices.Sorted(maps.Keys(files.content)) {
		var err error
		switch {
		case strings.HasSuffix(key, ".pub"):
			_, err = files.publicKeys(key)
		case strings.HasSuffix(key, ".json"):
			_, err = files.trustedRoot(key)
		}
		if err != nil {
			return &sources.InvalidError{
				File: origin + " key " + key, Problem: "is neither a public key nor a trusted root of Sigstore: " + err.Error(), Remedy: "remove it",
			}
		}
	}
	return nil
}

// Remedies of invalid policies.
const (
	layoutRemedy = "write a list of rules, each with a prefix, and keys, identities or require"
	keyRemedy    = "add the key to the same object"
)

// parser reads a policy. Its methods return an [*sources.InvalidError] with the line.
type parser struct {
	file  string
	files *keyFiles
	// patternSize is the size of the regular expressions so far.
	patternSize int
}

func (p *parser) invalid(at *yaml.Node, problem, remedy string) error {
	failed := &sources.InvalidError{File: p.file, Problem: problem, Remedy: remedy}
	if at != nil {
		failed.Line = at.Line
	}
	return failed
}

func (p *parser) policy(document *yaml.Node) (*Policy, error) {
	if len(document.Content) != 1 {
		return nil, p.invalid(nil, "has no rules", layoutRemedy)
	}
	fields, err := p.fields(document.Content[0], "rules")
	if err != nil {
		return nil, err
	}
	list, err := p.list(fields["rules"], "rules", maxRules)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, p.invalid(document.Content[0], "has no rules", layoutRemedy)
	}
	found := &Policy{}
	for _, node := range list {
		r, err := p.rule(node)
		if err != nil {
			return nil, err
		}
		for _, other := range found.rules {
			if other.Prefix == r.Prefix && slices.ContainsFunc(other.uses, func(u Use) bool { return slices.Contains(r.uses, u) }) {
				return nil, p.invalid(node, fmt.Sprintf("prefix %q has two rules", r.Prefix), "join them, or give each its own value of for")
			}
		}
		found.rules = append(found.rules, r)
	}
	return found, nil
}

// rule reads one rule.
func (p *parser) rule(node *yaml.Node) (*Rule, error) {
	fields, err := p.fields(node, "prefix", "for", "require", "keys", "identities", "transparencyLog", "trustedRoot")
	if err != nil {
		return nil, err
	}
	r := &Rule{Origin: fmt.Sprintf("%s, line %d", p.file, node.Line)}
	if r.Prefix, err = p.prefix(fields["prefix"], node); err != nil {
		return nil, err
	}
	if r.uses, err = p.uses(fields["for"]); err != nil {
		return nil, err
	}
	if r.keys, err = p.publicKeys(fields["keys"]); err != nil {
		return nil, err
	}
	if r.identities, err = p.identities(fields["identities"]); err != nil {
		return nil, err
	}
	if r.Requirement, err = p.requirement(fields["require"], node, r); err != nil {
		return nil, err
	}
	if log := fields["transparencyLog"]; log != nil && r.Requirement != RequireSignature {
		return nil, p.invalid(log, "a rule without signers has a transparencyLog", "remove it")
	}
	return r, p.trust(r, fields, node)
}

// fields returns the fields of a map by name.
func (p *parser) fields(node *yaml.Node, known ...string) (map[string]*yaml.Node, error) {
	if node.Kind != yaml.MappingNode {
		return nil, p.invalid(node, "a map is expected here", layoutRemedy)
	}
	found := map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch {
		case !slices.Contains(known, key.Value):
			return nil, p.invalid(key, fmt.Sprintf("field %q is unknown", key.Value), "use "+strings.Join(known, ", "))
		case found[key.Value] != nil:
			return nil, p.invalid(key, fmt.Sprintf("field %q is there twice", key.Value), "remove one")
		}
		found[key.Value] = value
	}
	return found, nil
}

// list returns the items of a list; none for a field that is not there.
func (p *parser) list(node *yaml.Node, field string, limit int) ([]*yaml.Node, error) {
	switch {
	case node == nil:
		return nil, nil
	case node.Kind != yaml.SequenceNode || len(node.Content) == 0:
		return nil, p.invalid(node, fmt.Sprintf("field %q is no list with items", field), layoutRemedy)
	case len(node.Content) > limit:
		return nil, p.invalid(node, fmt.Sprintf("field %q has more than %d items", field, limit), "shorten the list")
	}
	return node.Content, nil
}

// text returns the text of a field.
func (p *parser) text(node *yaml.Node, field string) (string, error) {
	if node.Kind != yaml.ScalarNode || node.Tag != "!!str" {
		return "", p.invalid(node, fmt.Sprintf("field %q is no text", field), "write a text")
	}
	return node.Value, nil
}

func (p *parser) prefix(node, rule *yaml.Node) (string, error) {
	if node == nil {
		return "", p.invalid(rule, "a rule has no prefix", `write a registry or the start of a repository, or "" for all images`)
	}
	text, err := p.text(node, "prefix")
	if err != nil || text == "" {
		return "", err
	}
	text = strings.TrimSuffix(text, "/")
	host, path, _ := strings.Cut(text, "/")
	if !sources.IsPlace(strings.ToLower(host) + strings.TrimPrefix(text, host)) {
		return "", p.invalid(node, fmt.Sprintf("prefix %q is no start of a repository", text), "write it as registry.example.com/team")
	}
	if strings.ContainsAny(path, ":@") {
		return "", p.invalid(node, fmt.Sprintf("prefix %q has a tag or a digest", text), "write the repository alone")
	}
	return canonicalHost(host) + strings.TrimPrefix(text, host), nil
}

func (p *parser) uses(node *yaml.Node) ([]Use, error) {
	list, err := p.list(node, "for", 2)
	if err != nil {
		return nil, err
	}
	if list == nil {
		return []Use{Catalogs, Bundles}, nil
	}
	var found []Use
	for _, item := range list {
		use := Use(item.Value)
		if item.Kind != yaml.ScalarNode || use != Catalogs && use != Bundles {
			return nil, p.invalid(item, fmt.Sprintf("%q is no use of images", item.Value), "write catalogs, bundles or both")
		}
		found = append(found, use)
	}
	return found, nil
}

// named returns the existing key that a field names.
func (p *parser) named(node *yaml.Node, field string) (string, error) {
	key, err := p.text(node, field)
	if err != nil {
		return "", err
	}
	if _, ok := p.files.content[key]; !ok {
		return "", p.invalid(node, fmt.Sprintf("field %q names %q, which does not exist", field, key), keyRemedy)
	}
	return key, nil
}

func (p *parser) publicKeys(node *yaml.Node) ([]*key, error) {
	list, err := p.list(node, "keys", maxSigners)
	if err != nil {
		return nil, err
	}
	var found []*key
	for _, item := range list {
		file, err := p.named(item, "keys")
		if err != nil {
			return nil, err
		}
		all, err := p.files.publicKeys(file)
		if err != nil {
			return nil, p.invalid(item, fmt.Sprintf("%s has no usable public key: %v", file, err), "write public keys in PEM form, as cosign public-key does")
		}
		if found = append(found, all...); len(found) > maxSigners {
			return nil, p.invalid(item, fmt.Sprintf("a rule has more than %d public keys", maxSigners), "remove some")
		}
	}
	return found, nil
}

func (p *parser) identities(node *yaml.Node) ([]identity, error) {
	list, err := p.list(node, "identities", maxSigners)
	if err != nil {
		return nil, err
	}
	var found []identity
	for _, item := range list {
		one, err := p.identity(item)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

var (
	errNoStart      = errors.New("it does not start with ^ in each alternative")
	errLongPatterns = errors.New("the regular expressions are too large, with their repetitions")
)

// identity reads who may sign. A pattern has to start with ^: without it, text before the name would be accepted.
func (p *parser) identity(node *yaml.Node) (identity, error) {
	fields, err := p.fields(node, "issuer", "issuerRegExp", "subject", "subjectRegExp")
	if err != nil {
		return identity{}, err
	}
	byField := map[string]string{}
	var texts []string
	for _, field := range []string{"issuer", "issuerRegExp", "subject", "subjectRegExp"} {
		value := fields[field]
		if value == nil {
			continue
		}
		if byField[field], err = p.text(value, field); err != nil {
			return identity{}, err
		}
		if strings.HasSuffix(field, "RegExp") {
			size, err := checkPattern(byField[field])
			if err == nil && p.patternSize+size > maxPatternSize {
				err = errLongPatterns
			}
			p.patternSize += size
			if err != nil {
				return identity{}, p.invalid(value, fmt.Sprintf("%s %q cannot be used: %v", field, byField[field], err), "write a regular expression as ^https://github.com/acme/")
			}
		}
		texts = append(texts, field+" "+byField[field])
	}
	if (byField["issuer"] == "") == (byField["issuerRegExp"] == "") || (byField["subject"] == "") == (byField["subjectRegExp"] == "") {
		return identity{}, p.invalid(node, "an identity needs an issuer and a subject", "write either issuer or issuerRegExp, and either subject or subjectRegExp")
	}
	matcher, err := verify.NewShortCertificateIdentity(byField["issuer"], byField["issuerRegExp"], byField["subject"], byField["subjectRegExp"])
	if err != nil {
		return identity{}, p.invalid(node, err.Error(), layoutRemedy)
	}
	return identity{text: strings.Join(texts, ", "), matcher: matcher}, nil
}

// checkPattern returns the size of a regular expression. It returns an error for one that cannot be used.
func checkPattern(text string) (int, error) {
	pattern, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, err //nolint:wrapcheck // the caller names the field
	}
	first := pattern
	if first.Op == syntax.OpConcat {
		first = first.Sub[0]
	}
	if first.Op != syntax.OpBeginText {
		return 0, errNoStart
	}
	return len(text) * repetitions(pattern), nil
}

// repetitions returns how often the most frequent part of a regular expression is in its compiled form.
func repetitions(pattern *syntax.Regexp) int {
	most := 1
	for _, part := range pattern.Sub {
		most = max(most, repetitions(part))
	}
	if pattern.Op == syntax.OpRepeat {
		most *= max(1, pattern.Min, pattern.Max)
	}
	return most
}

func (p *parser) requirement(node, rule *yaml.Node, r *Rule) (Requirement, error) {
	hasSigners := len(r.keys)+len(r.identities) > 0
	wanted := RequireSignature
	if node != nil {
		text, err := p.text(node, "require")
		if err != nil {
			return "", err
		}
		wanted = Requirement(text)
	}
	switch wanted {
	case RequireSignature:
		if !hasSigners {
			return "", p.invalid(rule, "a rule has neither keys nor identities", "name who must have signed, or write require: none, node or reject")
		}
	case RequireNone, RequireNode, RequireReject:
		if hasSigners {
			return "", p.invalid(node, fmt.Sprintf("a rule with require: %s has keys or identities", wanted), "remove either")
		}
	default:
		return "", p.invalid(node, fmt.Sprintf("require: %q is unknown", wanted), "write signature, none, node or reject")
	}
	return wanted, nil
}

// root reads the trusted root of a rule. node is nil if the rule has none.
func (p *parser) root(node *yaml.Node) (trustedRoot, error) {
	if node == nil {
		return trustedRoot{}, nil
	}
	file, err := p.named(node, "trustedRoot")
	if err != nil {
		return trustedRoot{}, err
	}
	found, err := p.files.trustedRoot(file)
	if err != nil {
		return trustedRoot{}, p.invalid(node, fmt.Sprintf("%s is no trusted root of Sigstore: %v", file, err),
			"write the output of cosign trusted-root create, or the trusted_root.json of your instance")
	}
	return found, nil
}

// trust reads the trusted root of a rule, and whether it requires the transparency log.
func (p *parser) trust(r *Rule, fields map[string]*yaml.Node, rule *yaml.Node) error {
	r.log = len(r.identities) > 0 && len(r.keys) == 0
	if node := fields["transparencyLog"]; node != nil {
		if err := node.Decode(&r.log); err != nil || node.Tag != "!!bool" {
			return p.invalid(node, `field "transparencyLog" is neither true nor false`, "write true or false")
		}
	}
	trusted, err := p.root(fields["trustedRoot"])
	if err != nil {
		return err
	}
	r.root = trusted.root
	if r.root == nil && (r.log || len(r.identities) > 0) {
		return p.invalid(rule, "a rule with identities or a transparency log has no trustedRoot", "name the key with the trusted_root.json of your instance of Sigstore")
	}
	if r.root != nil && r.Requirement != RequireSignature {
		return p.invalid(rule, "a rule without signers has a trustedRoot", "remove it")
	}
	r.identify(trusted.sum)
	return nil
}
