package sources

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/bundles/image/pemcerts"
)

// Names of keys and files.
const (
	keyRegistries    = "registries.conf"
	keyRoots         = "ca-bundle.crt"
	suffixRegistries = ".registries.conf"
	suffixHosts      = ".hosts.toml"
	hostsFileName    = "hosts.toml"

	// KeyVerification is the key with the rules for signatures, which package signature reads.
	KeyVerification = "verification.yaml"
)

// IsForSignatures reports whether a key is for the verification of signatures: rules, public keys and trusted roots.
func IsForSignatures(key string) bool {
	return key == KeyVerification || strings.HasSuffix(key, ".pub") || strings.HasSuffix(key, ".json")
}

// keysRemedy lists the keys of a ConfigMap.
const keysRemedy = "name it registries.conf, NAME.registries.conf, HOST.hosts.toml, HOST (for certificates to trust), HOST.cert and HOST.key, ca-bundle.crt, or verification.yaml, NAME.pub and NAME.json (for signatures); write a port as HOST..PORT"

// Parse returns the rules in the keys of a ConfigMap or a Secret. origin names the object in messages.
func Parse(origin string, keys map[string][]byte) (*Table, error) {
	p := newParser()
	p.keys(origin, keys)
	return p.finish()
}

// parser collects the settings of one origin.
type parser struct {
	registries []file
	table      *Table
	problems   []error
	// named are the files that hosts.toml files name.
	named  []string
	budget budget
}

func newParser() *parser {
	return &parser{table: &Table{hosts: map[string]*hostRule{}, certificates: map[string]*certificates{}}}
}

// finish returns the table, or an error with all problems.
func (p *parser) finish() (*Table, error) {
	tables, err := parseRegistries(p.registries)
	if err != nil {
		p.problems = append(p.problems, err)
	}
	p.table.registries = tables
	if err := invalid(p.problems); err != nil {
		return nil, err
	}
	return p.table, nil
}

func (p *parser) fail(name, problem, remedy string) {
	p.problems = append(p.problems, &InvalidError{File: name, Problem: problem, Remedy: remedy})
}

// keys parses the keys of a ConfigMap.
func (p *parser) keys(origin string, all map[string][]byte) {
	used := map[string]bool{}
	read := func(key string) ([]byte, error) {
		data, ok := all[key]
		if !ok {
			return nil, errNoKey
		}
		used[key] = true
		return data, nil
	}
	// drop-ins apply after registries.conf, in the order of their names.
	for _, key := range orderedRegistries(all) {
		p.registries = append(p.registries, file{name: origin + " key " + key, data: all[key]})
		used[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if host, ok := strings.CutSuffix(key, suffixHosts); ok {
			p.hosts(hostOfKey(host), file{name: origin + " key " + key, data: all[key]}, read)
			used[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if (!used[key] || key == keyRoots) && !IsForSignatures(key) {
			p.certificate(origin, key, all)
		}
	}
}

var errNoKey = errors.New("there is no such key")

// orderedRegistries returns the keys in the format registries.conf.
func orderedRegistries(all map[string][]byte) []string {
	var found []string
	if _, ok := all[keyRegistries]; ok {
		found = append(found, keyRegistries)
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if strings.HasSuffix(key, suffixRegistries) {
			found = append(found, key)
		}
	}
	return found
}

// hostOfKey returns the registry in a key, which cannot have a colon.
func hostOfKey(key string) string {
	if key == defaultHost {
		return key
	}
	host, port, found := strings.Cut(key, "..")
	if !found {
		// containerd's spelling is HOST_PORT_.
		host, port, found = strings.Cut(strings.TrimSuffix(key, "_"), "_")
	}
	if found {
		return normalHost(host + ":" + port)
	}
	return normalHost(host)
}

// hosts parses a hosts.toml.
func (p *parser) hosts(host string, f file, read reader) {
	if host != defaultHost && !isHost(host) {
		p.fail(f.name, fmt.Sprintf("%q is no registry", host), keysRemedy)
		return
	}
	rule, err := parseHosts(f, read, &p.budget)
	if err != nil {
		p.problems = append(p.problems, err)
		return
	}
	if other := p.table.hosts[host]; other != nil {
		p.fail(f.name, fmt.Sprintf("%s has settings for %q already", other.origin, host), "remove one")
		return
	}
	p.table.hosts[host] = rule
}

// certificate parses a key with certificates.
func (p *parser) certificate(origin, key string, all map[string][]byte) {
	place := origin + " key " + key
	if key == keyRoots {
		p.roots(place, all[key])
		return
	}
	for _, suffix := range []string{".cert", ".key"} {
		base, ok := strings.CutSuffix(key, suffix)
		if !ok {
			continue
		}
		pair, other := all[base+".key"], base+".cert"
		if suffix == ".cert" {
			other = base + ".key"
		}
		switch {
		case all[other] == nil:
			p.fail(place, "the other half of the client certificate is missing", "add key "+other)
		case suffix == ".cert":
			p.pair(place, hostOfKey(base), all[key], pair)
		}
		return
	}
	host := hostOfKey(key)
	if !isHost(host) || !strings.ContainsAny(host, ".:") {
		p.fail(place, "is none of the known keys", keysRemedy)
		return
	}
	p.hostRoots(place, host, all[key])
}

const rootsRemedy = "write the certificates of CAs in PEM form"

func (p *parser) roots(place string, data []byte) {
	if !p.checkRoots(place, data, rootsRemedy) {
		return
	}
	p.table.roots = append(p.table.roots, data)
}

func (p *parser) hostRoots(place, host string, data []byte) {
	if !p.checkRoots(place, data, rootsRemedy+", or "+keysRemedy) {
		return
	}
	p.of(host).roots = append(p.of(host).roots, data)
}

// checkRoots reports whether a text has certificates to trust, and nothing else. If not, parsing fails.
func (p *parser) checkRoots(place string, data []byte, remedy string) bool {
	_, err := pemcerts.Parse(data)
	if invalid, is := errors.AsType[*pemcerts.Error](err); is {
		p.problems = append(p.problems, &InvalidError{File: place, Line: invalid.Line, Problem: invalid.Problem, Remedy: remedy})
	}
	return err == nil
}

func (p *parser) pair(place, host string, certificate, key []byte) {
	pair, err := p.budget.pair(certificate, key)
	if err != nil {
		p.fail(place, "is no client certificate: "+err.Error(), "write certificate and key in PEM form")
		return
	}
	p.of(host).pairs = append(p.of(host).pairs, pair)
}

// of returns the certificates of a registry.
func (p *parser) of(host string) *certificates {
	if p.table.certificates[host] == nil {
		p.table.certificates[host] = &certificates{}
	}
	return p.table.certificates[host]
}
