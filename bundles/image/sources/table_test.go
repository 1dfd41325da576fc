package sources

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"

	"github.com/chandlery/chandlery/bundles/image"
)

const someDigest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// routeOf returns the places of a route in their order, with their skipped places.
func routeOf(t *testing.T, table *Table, text string) (asked, skipped []string) {
	t.Helper()
	ref, err := name.ParseReference(text)
	if err != nil {
		t.Fatal(err)
	}
	route, err := Tables{table}.Route(ref)
	if err != nil {
		t.Fatal(err)
	}
	for i := range route.Sources {
		asked = append(asked, route.Sources[i].Reference.Name())
	}
	for _, s := range route.Skipped {
		skipped = append(skipped, s.Place+": "+s.Why)
	}
	return asked, skipped
}

func parse(t *testing.T, keys map[string]string) *Table {
	t.Helper()
	table, err := Parse("ConfigMap a/b", bytesOf(keys))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func bytesOf(keys map[string]string) map[string][]byte {
	all := map[string][]byte{}
	for key, text := range keys {
		all[key] = []byte(text)
	}
	return all
}

const registriesText = `
unqualified-search-registries = ["docker.io"]

[[registry]]
prefix = "source.test"
location = "source.test"
[[registry.mirror]]
location = "mirror.test/all"

[[registry]]
prefix = "source.test/op/a"
location = "source.test/op/a"
mirror-by-digest-only = true
[[registry.mirror]]
location = "mirror.test/a"

[[registry]]
prefix = "*.wild.test"
[[registry.mirror]]
location = "mirror.test/wild"
pull-from-mirror = "tag-only"

[[registry]]
location = "blocked.test"
blocked = true
[[registry.mirror]]
location = "mirror.test/b"

[[registry]]
prefix = "gone.test"
location = "blocked.test"
blocked = true

[[registry]]
location = "blocked.test:8443"

[[registry]]
location = "secure.test:443"
blocked = true

[[registry]]
location = "docker.io"
[[registry.mirror]]
location = "mirror.test/hub"
`

func TestRegistriesConf(t *testing.T) {
	table := parse(t, map[string]string{"registries.conf": registriesText})
	for image, want := range map[string]struct {
		reason         string
		asked, skipped []string
	}{
		"source.test/x:v1":              {reason: "mirrors come first", asked: []string{"mirror.test/all/x:v1", "source.test/x:v1"}},
		"source.test/op/a" + someDigest: {reason: "the longest prefix counts", asked: []string{"mirror.test/a" + someDigest, "source.test/op/a" + someDigest}},
		"source.test/op/a:v1":           {reason: "a mirror for digests only", asked: []string{"source.test/op/a:v1"}, skipped: []string{"mirror.test/a: the mirror is for digests only"}},
		"source.test/op/ab/x:v1":        {reason: "prefixes end at separators", asked: []string{"mirror.test/all/op/ab/x:v1", "source.test/op/ab/x:v1"}},
		"source.test/op/a/b" + someDigest: {
			reason: "a narrower path", asked: []string{"mirror.test/a/b" + someDigest, "source.test/op/a/b" + someDigest},
		},
		"a.wild.test/x:v1":              {reason: "subdomains", asked: []string{"mirror.test/wild/x:v1", "a.wild.test/x:v1"}},
		"a.b.wild.test/x" + someDigest:  {reason: "a mirror for tags only", asked: []string{"a.b.wild.test/x" + someDigest}, skipped: []string{"mirror.test/wild: the mirror is for tags only"}},
		"blocked.test/x:v1":             {reason: "only the mirror", asked: []string{"mirror.test/b/x:v1"}, skipped: []string{"blocked.test/x:v1: it is blocked"}},
		"gone.test/x:v1":                {reason: "the place counts, not the name", skipped: []string{"blocked.test/x:v1: it is blocked"}},
		"BLOCKED.test/x:v1":             {reason: "hosts in capitals", asked: []string{"mirror.test/b/x:v1"}, skipped: []string{"blocked.test/x:v1: it is blocked"}},
		"registry-1.docker.io/a/b:1":    {reason: "another name of Docker Hub", asked: []string{"mirror.test/hub/a/b:1", "index.docker.io/a/b:1"}},
		"blocked.test:443/x:v1":         {reason: "the port that the host has anyway", skipped: []string{"blocked.test:443/x:v1: it is blocked"}},
		"blocked.test:5000/x:v1":        {reason: "a host is blocked with all ports", skipped: []string{"blocked.test:5000/x:v1: it is blocked"}},
		"blocked.test:8443/x:v1":        {reason: "a port with a table of its own", asked: []string{"blocked.test:8443/x:v1"}},
		"secure.test/x:v1":              {reason: "the blocked port is that of HTTPS", skipped: []string{"secure.test/x:v1: it is blocked"}},
		"nginx:1":                       {reason: "short names of docker.io", asked: []string{"mirror.test/hub/library/nginx:1", "index.docker.io/library/nginx:1"}},
		"source.test:5000/x:v1":         {reason: "a port", asked: []string{"source.test:5000/x:v1"}},
		"other.test/x:v1":               {reason: "no rule", asked: []string{"other.test/x:v1"}},
		"source.test/x:v1" + someDigest: {reason: "a tag beside a digest", asked: []string{"mirror.test/all/x" + someDigest, "source.test/x" + someDigest}},
	} {
		asked, skipped := routeOf(t, table, image)
		if diff := cmp.Diff(want.asked, asked) + cmp.Diff(want.skipped, skipped); diff != "" {
			t.Errorf("%s: %s (-want, +got):\n%s", image, want.reason, diff)
		}
	}
}

// TestAsLibrary compares rules with those of the library, for its own test files and some more.
func TestAsLibrary(t *testing.T) {
	const library = "mirror.example.com"
	for name, text := range map[string]string{
		"Ours":              registriesText,
		"Empty":             "",
		"Slash":             "[[registry]]\nlocation = \"a.test/\"\n",
		"SamePrefix":        "[[registry]]\nlocation = \"a.test\"\n[[registry]]\nprefix = \"a.test\"\nlocation = \"b.test\"\n",
		"NoLocation":        "[[registry]]\nprefix = \"a.test\"\n",
		"Neither":           "[[registry]]\ninsecure = true\n",
		"URL":               "[[registry]]\nlocation = \"https://a.test\"\n",
		"MirrorURL":         "[[registry]]\nlocation = \"a.test\"\n[[registry.mirror]]\nlocation = \"http://b.test\"\n",
		"NoMirrorLocation":  "[[registry]]\nlocation = \"a.test\"\n[[registry.mirror]]\ninsecure = true\n",
		"MirrorAtRegistry":  "[[registry]]\nlocation = \"a.test\"\npull-from-mirror = \"all\"\n",
		"BothRestrictions":  "[[registry]]\nlocation = \"a.test\"\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = \"b.test\"\npull-from-mirror = \"all\"\n",
		"UnknownPull":       "[[registry]]\nlocation = \"a.test\"\n[[registry.mirror]]\nlocation = \"b.test\"\npull-from-mirror = \"some\"\n",
		"Wildcard":          "[[registry]]\nprefix = \"*.a.test/b\"\n",
		"InsecureConflict":  "[[registry]]\nprefix = \"a.test/a\"\nlocation = \"b.test\"\n[[registry]]\nlocation = \"b.test\"\ninsecure = true\n",
		"BlockedConflict":   "[[registry]]\nprefix = \"a.test/a\"\nlocation = \"b.test\"\nblocked = true\n[[registry]]\nlocation = \"b.test\"\n",
		"Version1":          "[registries.search]\nregistries = [\"a.test\"]\n",
		"NotTOML":           "[[registry\n",
		"WrongType":         "[[registry]]\nlocation = 3\n",
		"ShortNames":        "short-name-mode = \"enforcing\"\n[aliases]\n\"a\" = \"b.test/a\"\n",
		"CredentialHelpers": "credential-helpers = [\"containers-auth.json\", \"pass\"]\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "registries.conf")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			system := &types.SystemContext{SystemRegistriesConfPath: path, SystemRegistriesConfDirPath: filepath.Join(t.TempDir(), "none")}
			_, wantErr := sysregistriesv2.TryUpdatingCache(system)
			table, err := Parse("a", map[string][]byte{"registries.conf": []byte(text)})
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("got %v, the library says %v", err, wantErr)
			}
			if err != nil {
				return
			}
			for _, image := range []string{
				"source.test/x", "source.test/op/a", "source.test/op/a/b", "source.test/op/ab", "x.wild.test/a", "wild.test/a", "blocked.test/a/b",
				"gone.test/a", "docker.io/library/a", "a.test/a", "a.test/a/b", "b.test/a", library + "/a",
			} {
				want, err := sysregistriesv2.FindRegistry(system, image)
				if err != nil {
					t.Fatal(err)
				}
				got := table.registryOf(image)
				if (got == nil) != (want == nil) || got != nil && cmp.Diff(*want, got.Registry) != "" {
					t.Errorf("%s: got %+v, the library says %+v", image, got, want)
				}
				if want != nil {
					samePlaces(t, want, table, image)
				}
			}
		})
	}
}

// samePlaces compares the places of an image by tag and by digest with those of the library.
func samePlaces(t *testing.T, rule *sysregistriesv2.Registry, table *Table, logical string) {
	t.Helper()
	for _, suffix := range []string{":v1", someDigest} {
		named, err := reference.ParseNamed(logical + suffix)
		if err != nil {
			t.Fatal(err)
		}
		places, err := rule.PullSourcesFromReference(named)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, place := range places {
			blocking := table.registryOf(place.Reference.String())
			if blocking == nil || !blocking.Blocked {
				want = append(want, strings.Replace(place.Reference.String(), "docker.io/", "index.docker.io/", 1))
			}
		}
		if got, _ := routeOf(t, table, logical+suffix); cmp.Diff(want, got) != "" {
			t.Errorf("%s (-want, +got):\n%s", logical+suffix, cmp.Diff(want, got))
		}
	}
}

const placesText = `[[registry]]
prefix = "/x"
location = "a.test"
[[registry]]
prefix = "../x"
location = "a.test"
[[registry]]
prefix = "Quay.test/x"
location = "a.test"
[[registry]]
prefix = "a.test/x "
location = "a.test"
[[registry]]
prefix = "**"
location = "a.test"
[[registry]]
prefix = "*."
location = "a.test"
[[registry]]
prefix = "*.*.a.test"
location = "a.test"
[[registry]]
location = "a.test"
[[registry.mirror]]
location = "mirror/all"
`

// invalidCase is settings that are refused, and parts of the error.
type invalidCase struct {
	keys map[string]string
	want []string
}

func (c invalidCase) check(t *testing.T) {
	table, err := Parse("ConfigMap a/b", bytesOf(c.keys))
	if err == nil || table != nil || strings.Contains(err.Error(), "hunter2") {
		t.Fatalf("got %v, %v", table, err)
	}
	for _, want := range c.want {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, without %q", err, want)
		}
	}
}

// TestInvalidTOML checks the errors for a registries.conf of another form, with their lines.
func TestInvalidTOML(t *testing.T) {
	for name, test := range map[string]invalidCase{
		"UnknownKey": {
			keys: map[string]string{"registries.conf": "[[registry]]\nlocation = \"a.test\"\nmirrors = [\"b.test\"]\n"},
			want: []string{`ConfigMap a/b key registries.conf, line 3: unknown key "registry.mirrors"; remove or correct the key; see containers-registries.conf(5)`},
		},
		"NotTOML": {
			keys: map[string]string{"registries.conf": "\n[[registry\n"},
			want: []string{"ConfigMap a/b key registries.conf, line 3: is not TOML of the expected form: ", "correct the TOML"},
		},
		"WrongType": {
			keys: map[string]string{"registries.conf": "[[registry]]\nlocation = \"a.test\"\nblocked = \"yes\"\n"},
			want: []string{`ConfigMap a/b key registries.conf, line 3: "registry.blocked" is not true or false; correct the TOML`},
		},
		"SingleBrackets": {
			keys: map[string]string{"registries.conf": "\n[registry]\nlocation = \"a.test\"\n"},
			want: []string{`registries.conf, line 2: "registry" is not a list of tables, each with its name in two pairs of brackets`},
		},
		"Aliases": {
			keys: map[string]string{"registries.conf": "[aliases]\n\"a\" = 3\n"},
			want: []string{`line 2: "aliases.a" is not a text in quotes`},
		},
		"DropIn": {
			keys: map[string]string{"registries.conf": "", "10-mirrors.registries.conf": "[[registry]]\ninsecure = true\n"},
			want: []string{"key 10-mirrors.registries.conf, line 1: a registry has neither prefix nor location"},
		},
		"Version1": {
			keys: map[string]string{"registries.conf": "[registries.search]\nregistries = [\"a.test\"]\n"},
			want: []string{"line 1: is in version 1 of the format; write [[registry]] tables"},
		},
	} {
		t.Run(name, test.check)
	}
}

// TestInvalidTables checks the errors for tables that would never apply, with their lines.
func TestInvalidTables(t *testing.T) {
	for name, test := range map[string]invalidCase{
		"MirrorKey": {
			keys: map[string]string{"registries.conf": "[[registry]]\nlocation = \"a.test\"\n[[registry.mirror]]\nlocation = \"b.test\"\n" +
				"[[registry.mirror]]\nlocation = \"c.test\"\npull-from-mirror = \"never\"\n[[registry]]\nlocation = \"d.test\"\n[[registry.mirror]]\nlocation = \"e f\"\n"},
			want: []string{`line 7: pull-from-mirror "never" of mirror "c.test"`, `line 11: location "e f" is no place of images`},
		},
		"Places": {
			keys: map[string]string{"registries.conf": placesText},
			want: []string{
				`line 2: prefix "/x" is no place`, `line 5: prefix "../x" is no place`, `line 8: prefix "Quay.test/x" is no place`, `line 11: prefix "a.test/x " is no place`,
				`line 14: prefix "**" is no place`, `line 17: prefix "*." is no place`, `line 20: prefix "*.*.a.test" is no place`, `line 25: location "mirror/all" is no place`,
			},
		},
		"Location": {
			keys: map[string]string{"registries.conf": "[[registry]]\n\nlocation = \"mirror\"\n"}, want: []string{`line 3: location "mirror" is no place of images; write host[:port][/path]`},
		},
		"Inline": {
			keys: map[string]string{"registries.conf": "\nregistry = [{location = \"mirror\"}]\n"}, want: []string{`line 2: location "mirror" is no place of images`},
		},
		"Missing": {
			keys: map[string]string{"registries.conf": "[[registry]]\nlocation = \"a.test\"\n[[registry.mirror]]\n"},
			want: []string{`line 3: a mirror of "a.test" has no location; add location = "registry.example.com/path"`},
		},
		"SecondIsBlocked": {
			keys: map[string]string{"registries.conf": "[[registry]]\nlocation = \"a.test\"\n[[registry]]\nprefix = \"a.test\"\nlocation = \"b.test\"\nblocked = true\n"},
			want: []string{`line 3: prefix "a.test" has two tables, and the first one, which counts, is not blocked; join them`},
		},
		"Semantics": {
			keys: map[string]string{"registries.conf": "[[registry]]\nlocation = \"a.test\"\n\n[[registry]]\nlocation = \"https://b.test\"\n"},
			want: []string{`registries.conf, line 5: "https://b.test" is a URL; write host[:port][/path] in lower case`},
		},
	} {
		t.Run(name, test.check)
	}
}

// TestInvalidKeys checks the errors for other keys and files.
func TestInvalidKeys(t *testing.T) {
	for name, test := range map[string]invalidCase{
		"Password": {
			keys: map[string]string{"registries.conf": "[[registry]]\nlocation = \"https://bob:hunter2@m.test\"\n", "b.test.hosts.toml": "server = \"https://bob:hunter2@m.test\"\n"},
			want: []string{`line 2: "https://…@m.test" is a URL`, `line 1: "https://…@m.test" is no URL of a registry; write it as`},
		},
		"OtherSpelling": {
			keys: map[string]string{"b.test.hosts.toml": "[host.\"https://a.test.\"]\n[host.\"https://a.test:0443\"]\n"},
			want: []string{`line 1: "https://a.test." is no URL of a registry`, `line 2: "https://a.test:0443" is no URL of a registry`},
		},
		"TwoHosts": {
			keys: map[string]string{"a.test..9.hosts.toml": "server = \"https://b.test\"\n", "a.test_9_.hosts.toml": "server = \"https://c.test\"\n"},
			want: []string{`key a.test_9_.hosts.toml: ConfigMap a/b key a.test..9.hosts.toml has settings for "a.test:9" already; remove one`},
		},
		"Hosts": {
			keys: map[string]string{"a.test.hosts.toml": "server = \"https://a.test\"\n[host.\"ftp://b.test\"]\ncapabilities = [\"pull\", \"sing\"]\nca = \"missing.crt\"\ndial_timeout = \"soon\"\n"},
			want: []string{
				`key a.test.hosts.toml, line 3: unknown capability "sing"`, `line 2: "ftp://b.test" is no URL of a registry`,
				`line 4: "missing.crt" cannot be read: there is no such key`, `line 5: dial_timeout "soon" is no duration above zero`,
			},
		},
		"HostsKey": {
			keys: map[string]string{"_default.hosts.toml": "[host.\"https://b.test\"]\nskip-verify = true\n"},
			want: []string{`key _default.hosts.toml, line 2: unknown key`},
		},
		"OtherKey":  {keys: map[string]string{"registry.conf": "a"}, want: []string{"ConfigMap a/b key registry.conf: has no PEM certificate; write the certificates of CAs in PEM form, or name it registries.conf"}},
		"NoHost":    {keys: map[string]string{"readme": "a"}, want: []string{"ConfigMap a/b key readme: is none of the known keys; name it"}},
		"Roots":     {keys: map[string]string{"ca-bundle.crt": "a"}, want: []string{"key ca-bundle.crt: has no PEM certificate"}},
		"Key":       {keys: map[string]string{"a.test..5000": "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"}, want: []string{"has a PEM block of type EC PRIVATE KEY, not CERTIFICATE"}},
		"HalfPair":  {keys: map[string]string{"a.test.cert": "a"}, want: []string{"key a.test.cert: the other half of the client certificate is missing; add key a.test.key"}},
		"OtherHalf": {keys: map[string]string{"a.test.key": "a"}, want: []string{"add key a.test.cert"}},
		"Pair":      {keys: map[string]string{"a.test.key": "a", "a.test.cert": "b"}, want: []string{"key a.test.cert: is no client certificate: "}},
		"All": {
			keys: map[string]string{"registries.conf": "a = 1\n", "a.test": "no"},
			want: []string{"unknown key", "key a.test: has no PEM certificate"},
		},
	} {
		t.Run(name, test.check)
	}
}

func TestHosts(t *testing.T) {
	table := parse(t, map[string]string{
		"source.test.hosts.toml": `
server = "https://server.test"
[host."https://second.test/v2/hub"]
override_path = true
capabilities = ["pull"]
[host."http://first.test:5000"]
[host."https://third.test/some/path"]
`,
		"port.test_5000_.hosts.toml": "[host.\"mirror.test\"]\n",
		"docker.io.hosts.toml":       "server = \"https://mirror.test\"\n",
	})
	for image, want := range map[string]struct {
		reason         string
		asked, skipped []string
	}{
		"source.test/a" + someDigest: {
			reason: "the order of the file, the server last",
			asked:  []string{"second.test/hub/a" + someDigest, "first.test:5000/a" + someDigest, "third.test/a" + someDigest, "server.test/a" + someDigest},
		},
		"source.test/a:v1": {
			reason: "tags need the capability to resolve", asked: []string{"first.test:5000/a:v1", "third.test/a:v1", "server.test/a:v1"},
			skipped: []string{"second.test/hub/a: the host lacks capability resolve, which tags need"},
		},
		"port.test:5000/a:v1": {reason: "a port, and the image's own registry last", asked: []string{"mirror.test/a:v1", "port.test:5000/a:v1"}},
		"port.test/a:v1":      {reason: "another port", asked: []string{"port.test/a:v1"}},
		"nginx:1":             {reason: "docker.io", asked: []string{"mirror.test/library/nginx:1"}},
	} {
		asked, skipped := routeOf(t, table, image)
		if diff := cmp.Diff(want.asked, asked) + cmp.Diff(want.skipped, skipped); diff != "" {
			t.Errorf("%s: %s (-want, +got):\n%s", image, want.reason, diff)
		}
	}
	ref, err := name.ParseReference("source.test/a:v1")
	if err != nil {
		t.Fatal(err)
	}
	route, _ := Tables{table}.Route(ref)
	first, third := route.Sources[0], route.Sources[1]
	if !first.PlainHTTP || third.PlainHTTP || third.BasePath != "/some/path/v2" || first.Namespace != "source.test" {
		t.Errorf("got %+v and %+v", first.Endpoint, third.Endpoint)
	}
}

// TestBlockedHosts checks that a hosts.toml, also that of a tenant, leads to no place that a registries.conf blocks.
func TestBlockedHosts(t *testing.T) {
	const blocked = "[[registry]]\nlocation = \"blocked.test/acme\"\nblocked = true\n"
	const hosts = `
server = "https://free.test"
[host."https://blocked.test"]
[host."https://blocked.test/v2/acme"]
override_path = true
[host."https://blocked.test//v2/acme"]
override_path = true
[host."https://blocked.test:443//v2/acme"]
override_path = true
`
	ref, err := name.ParseReference("source.test/acme/x:v1")
	if err != nil {
		t.Fatal(err)
	}
	both := parse(t, map[string]string{"registries.conf": blocked, "source.test.hosts.toml": hosts})
	own, err := Tables{parse(t, map[string]string{"source.test.hosts.toml": hosts})}.Route(ref)
	if err != nil {
		t.Fatal(err)
	}
	cluster := Tables{parse(t, map[string]string{"registries.conf": blocked})}
	route, err := Tables{both}.Route(ref)
	if err != nil {
		t.Fatal(err)
	}
	for reason, found := range map[string]image.Route{"rules of one origin": route, "rules of a tenant": cluster.Restrict(own)} {
		if len(found.Sources) != 1 || found.Sources[0].Reference.Name() != "free.test/acme/x:v1" || len(found.Skipped) != 4 {
			t.Errorf("%s: got %+v", reason, found)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("registries.conf", registriesText)
	f.Add("a.test.hosts.toml", "[host.\"https://b.test\"]\nclient = [[\"a\", \"b\"]]\n")
	f.Add("a.test..5000", "-----BEGIN CERTIFICATE-----\n")
	f.Fuzz(func(t *testing.T, key, text string) {
		table, err := Parse("a", map[string][]byte{key: []byte(text)})
		if (table == nil) == (err == nil) {
			t.Errorf("got %v, %v", table, err)
		}
		ref, _ := name.ParseReference("source.test/a:v1")
		if table != nil {
			_, _ = Tables{table}.Route(ref)
		}
	})
}
