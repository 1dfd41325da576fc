package sources

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/pemcerts"
)

// hostsFile is the content of a hosts.toml.
type hostsFile struct {
	hostSettings

	Server string                  `toml:"server"`
	Host   map[string]hostSettings `toml:"host"`
}

// hostSettings are the settings of one host of a hosts.toml.
type hostSettings struct {
	Capabilities []string       `toml:"capabilities"`
	CA           any            `toml:"ca"`
	Client       any            `toml:"client"`
	SkipVerify   bool           `toml:"skip_verify"`
	OverridePath bool           `toml:"override_path"`
	DialTimeout  string         `toml:"dial_timeout"`
	Header       map[string]any `toml:"header"`
}

// mirrorHost is a host that stands for a registry.
type mirrorHost struct {
	image.Endpoint

	// registry is the host with its port, and prefix comes before the names of repositories there.
	registry, prefix string
	// pull and resolve are whether the host is asked for digests and for tags.
	pull, resolve bool
}

// hostRule is the rule of a hosts.toml.
type hostRule struct {
	origin string
	hosts  []mirrorHost
	// ownHost is true if the image's own registry is asked last.
	ownHost bool
}

// Remedies of a hosts.toml.
const (
	hostsRemedy = "see containerd's documentation of hosts.toml"
	pairRemedy  = "name a file with certificate and key in PEM form, or a pair of such files"
)

// reader returns the content of a file that a hosts.toml names.
type reader func(name string) ([]byte, error)

// parseHosts parses a hosts.toml.
func parseHosts(f file, read reader, budget *budget) (*hostRule, error) {
	content := &hostsFile{}
	if err := decodeStrictly(f, content, hostsRemedy); err != nil {
		return nil, err
	}
	p := &hostParser{file: f, read: read, budget: budget, lines: keyLines(f.data)}
	rule := &hostRule{origin: f.name, ownHost: content.Server == ""}
	for _, address := range hostOrder(f.data) {
		settings := content.Host[address]
		p.table = "host." + address
		rule.hosts = append(rule.hosts, p.host(address, &settings))
	}
	if content.Server != "" {
		p.table = ""
		rule.hosts = append(rule.hosts, p.host(content.Server, &content.hostSettings))
	}
	return rule, invalid(p.problems)
}

// hostOrder returns the addresses of the host tables in the order of the file.
func hostOrder(data []byte) []string {
	var content map[string]any
	meta, err := toml.Decode(string(data), &content)
	if err != nil {
		return nil
	}
	var found []string
	known := map[string]bool{}
	for _, key := range meta.Keys() {
		if len(key) >= 2 && key[0] == "host" && !known[key[1]] {
			known[key[1]] = true
			found = append(found, key[1])
		}
	}
	return found
}

// hostParser parses the hosts of one file and collects problems.
type hostParser struct {
	file   file
	read   reader
	budget *budget
	// lines are the lines of keys by their full names.
	lines map[string]int
	// table is the name of the table with the host; empty for the server.
	table    string
	problems []error
}

// failf adds a problem of a key in the table of the host.
func (p *hostParser) failf(key, remedy, format string, args ...any) {
	name := key
	if p.table != "" {
		name = p.table + "." + key
	}
	line := cmp.Or(p.lines[name], p.lines[cmp.Or(p.table, "server")])
	p.problems = append(p.problems, &InvalidError{File: p.file.name, Line: line, Problem: fmt.Sprintf(format, args...), Remedy: remedy})
}

// host returns the settings of one host.
func (p *hostParser) host(address string, s *hostSettings) mirrorHost {
	host := mirrorHost{}
	host.SkipTLSVerify = s.SkipVerify
	host.pull, host.resolve = p.capabilities(s.Capabilities)
	p.address(&host, address, s.OverridePath)
	for _, name := range p.list(s.CA, "ca") {
		data, ok := p.readFile(name, "ca")
		if !ok {
			continue
		}
		if _, err := pemcerts.Parse(data); err != nil {
			p.failf("ca", rootsRemedy, "ca %q: %v", name, err)
		}
		host.RootCAs = append(host.RootCAs, data)
	}
	host.Certificates = p.pairs(s.Client)
	if s.DialTimeout != "" {
		timeout, err := time.ParseDuration(s.DialTimeout)
		if err != nil || timeout <= 0 {
			p.failf("dial_timeout", "write it as 10s", "dial_timeout %q is no duration above zero", s.DialTimeout)
		}
		host.DialTimeout = timeout
	}
	for key, value := range s.Header {
		if host.Header == nil {
			host.Header = http.Header{}
		}
		for _, text := range p.list(value, "header."+key) {
			host.Header.Add(key, text)
		}
	}
	return host
}

func (p *hostParser) capabilities(names []string) (pull, resolve bool) {
	if len(names) == 0 {
		return true, true
	}
	for _, name := range names {
		switch name {
		case "pull":
			pull = true
		case "resolve":
			resolve = true
		case "push", "referrers":
		default:
			p.failf("capabilities", "use pull, resolve, push and referrers", "unknown capability %q", name)
		}
	}
	return pull, resolve
}

// address sets the registry of a host, from its URL.
func (p *hostParser) address(host *mirrorHost, address string, overridePath bool) {
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	u, err := url.Parse(address)
	if err != nil || !isRegistryURL(u) {
		p.failf("", "write it as https://mirror.example.com", "%q is no URL of a registry", withoutPassword(address))
		return
	}
	host.registry, host.PlainHTTP = normalHost(u.Host), u.Scheme == "http"
	base := strings.TrimSuffix(u.Path, "/")
	if !overridePath && base != "/v2" && !strings.HasSuffix(base, "/v2") {
		base += "/v2"
	}
	if prefix, below := strings.CutPrefix(base, "/v2/"); below {
		host.prefix = prefix + "/"
	} else if base != "/v2" {
		host.BasePath = base
	}
}

func isRegistryURL(u *url.URL) bool {
	return u.Host != "" && IsPlace(strings.ToLower(u.Host)) && !strings.HasPrefix(u.Port(), "0") && (u.Scheme == "http" || u.Scheme == "https") && u.RawQuery == "" && u.User == nil
}

// list returns a text or a list of texts.
func (p *hostParser) list(value any, key string) []string {
	switch value := value.(type) {
	case nil:
		return nil
	case string:
		return []string{value}
	case []any:
		var all []string
		for _, one := range value {
			all = append(all, p.list(one, key)...)
		}
		return all
	default:
		p.failf(key, "write a text in quotes, or a list of them", "%s is neither a text nor a list of texts", key)
		return nil
	}
}

func (p *hostParser) readFile(name, key string) ([]byte, bool) {
	data, err := p.read(name)
	if err == nil {
		err = p.budget.addNamed(data)
	}
	if err != nil {
		p.failf(key, "add the file, or correct its name", "%q cannot be read: %v", name, err)
		return nil, false
	}
	return data, true
}

// pairs returns the client certificates. An entry is a file with certificate and key, or a list of both files.
func (p *hostParser) pairs(value any) []tls.Certificate {
	entries, several := value.([]any)
	if !several && value != nil {
		entries = []any{value}
	}
	var all []tls.Certificate
	for _, entry := range entries {
		names := p.list(entry, "client")
		switch {
		case len(names) == 1 || len(names) == 2 && names[1] == "":
			all = append(all, p.pair(names[0], names[0])...)
		case len(names) == 2:
			all = append(all, p.pair(names[0], names[1])...)
		default:
			p.failf("client", pairRemedy, "client has an entry that is neither a file nor a pair of files")
		}
	}
	return all
}

func (p *hostParser) pair(certificate, key string) []tls.Certificate {
	first, ok := p.readFile(certificate, "client")
	if !ok {
		return nil
	}
	second, ok := p.readFile(key, "client")
	if !ok {
		return nil
	}
	pair, err := p.budget.pair(first, second)
	if err != nil {
		p.failf("client", pairRemedy, "client certificate %q with key %q: %v", certificate, key, err)
		return nil
	}
	return []tls.Certificate{pair}
}
