package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/cmd/internal/redact"
)

// hush is the secret that must not be shown.
const hush = "Xq7hushhush9Zk2"

const (
	begin = "-----BEGIN RSA PRIVATE KEY-----"
	end   = "-----END RSA PRIVATE KEY-----"
)

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestText(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason string
		text   string
		want   string
	}{
		"Nothing":     {reason: "what is not secret stays as it is", text: `E0712 pod "a" of secret "b" not found: retry=3 path=/x/y`, want: `E0712 pod "a" of secret "b" not found: retry=3 path=/x/y`},
		"Digest":      {reason: "a digest is none", text: "image x@sha256:" + strings.Repeat("ab", 32), want: "image x@sha256:" + strings.Repeat("ab", 32)},
		"Certificate": {reason: "certificates are there to be shown", text: "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", want: "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"},
		"Encoded":     {reason: "so they are in base64", text: encode("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"), want: encode("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----")},
		"Key":         {reason: "private keys are taken out whole", text: "a " + begin + "\n" + hush + "\n" + end + " b", want: "a [redacted] b"},
		"KeyCut":      {reason: "so is one that goes on where the text ends", text: "a " + begin + "\n" + hush, want: "a [redacted]"},
		"KeyTail":     {reason: "and one that began before it", text: hush + "\n" + hush + "\n" + end + " b", want: "[redacted] b"},
		"KeyEncoded":  {reason: "and one in base64", text: "x: " + encode("\n"+begin+"\n"+hush+"\n"+end), want: "x: [redacted]"},
		"URL":         {reason: "credentials in URLs", text: "GET https://user:" + hush + "@host/x and https://host/@y", want: "GET https://[redacted]@host/x and https://host/@y"},
		"URLToken":    {reason: "a token alone is one", text: "git+https://" + hush + "@host", want: "git+https://[redacted]@host"},
		"Bearer":      {reason: "tokens in headers", text: "Authorization: Bearer " + hush, want: "Authorization: [redacted]"},
		"Curl":        {reason: "wherever they are", text: `sent "bearer ` + hush + `"`, want: `sent "bearer [redacted]"`},
		"JWT":         {reason: "tokens of accounts", text: "got eyJhbGciOiJ.eyJpc3MiOiJ.c2lnbmF0", want: "got [redacted]"},
		"AWS":         {reason: "tokens with known beginnings", text: "AKIAIOSFODNN7EXAMPLE", want: "[redacted]"},
		"Variable":    {reason: "assignments by the name", text: "DB_PASSWORD=" + hush + " HOST=a", want: "DB_PASSWORD=[redacted] HOST=a"},
		"JSON":        {reason: "in JSON too", text: `{"apiKey":"a ` + hush + ` \" b","x":1}`, want: `{"apiKey":[redacted],"x":1}`},
		"JSONQuoted":  {reason: "and in JSON that is quoted", text: `"{\"client_secret\": \"` + hush + `\", \"x\": 1}"`, want: `"{\"client_secret\": [redacted], \"x\": 1}"`},
		"Open":        {reason: "and in quotes that end with the text", text: `"password": "` + hush, want: `"password": [redacted]`},
		"Flag":        {reason: "and on command lines", text: "run --auth-token " + hush + " --v=2", want: "run --auth-token [redacted] --v=2"},
		"Auth":        {reason: "registries' credentials", text: `{"auth":"` + hush + `","x":1}`, want: `{"auth":[redacted],"x":1}`},
		"Told":        {reason: "what somebody says", text: "the password is " + hush + ", the token is expired", want: "the password is [redacted], the token is expired"},
		"Signed":      {reason: "signatures of URLs", text: "GET https://a/b?se=1&sig=" + hush + "&x=1 https://c/?X-Amz-Signature=" + hush, want: "GET https://a/b?se=1&sig=[redacted]&x=1 https://c/?X-Amz-Signature=[redacted]"},
		"Login":       {reason: "the flags of curl", text: "curl -u admin:" + hush + " -p 8080 https://a", want: "curl -u [redacted] -p 8080 https://a"},
		"Short":       {reason: "the flags of databases", text: "mysql -u root -p" + hush + " -p " + hush + " -port=1 -print", want: "mysql -u root -p[redacted] -p [redacted] -port=1 -print"},
		"DockerAuth":  {reason: "pull secrets in base64", text: encode(`{"auths":{"registry.example.com":{"auth":"` + encode("u:"+hush) + `"}}}`), want: "[redacted]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := redact.Text(tt.text)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if again := redact.Text(got); again != got {
				t.Errorf("a second time it is %q", again)
			}
		})
	}
}

// FuzzText inserts a secret in each form into arbitrary texts.
func FuzzText(f *testing.F) {
	f.Add("a", "b")
	f.Add("-----BEGIN ", "=")
	f.Add("\"", "'\\")
	f.Add("x=\x00", "\xff")
	f.Fuzz(func(t *testing.T, before, after string) {
		for _, plant := range []string{
			" password=" + hush + " ", "\n" + begin + "\n" + hush + "\n" + end + "\n", " https://a:" + hush + "@b ",
			"\nAuthorization: Bearer " + hush + "\n", "\n{\"token\": \"" + hush + "\"}\n",
			" " + encode("\n"+begin+"\n"+hush+"\n"+end+"\n") + " ",
		} {
			got := redact.Text(before + plant + after)
			if strings.Contains(got, hush) || strings.Contains(got, encode(hush)) {
				t.Errorf("%q in %q", plant, got)
			}
		}
	})
}

func TestObject(t *testing.T) {
	t.Parallel()
	const object = `{
	  "kind": "Deployment",
	  "metadata": {"name": "a", "managedFields": [{"manager": "x"}], "annotations": {
	    "kubectl.kubernetes.io/last-applied-configuration": "{}", "example.com/note": "fine", "example.com/api-token": "HUSH",
	    "alm-examples": "[{\"kind\":\"Secret\",\"data\":{\"a\":\"HUSH\"}},{\"spec\":{\"password\":\"HUSH\",\"size\":3}}]"}},
	  "spec": {
	    "caBundle": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUI=",
	    "automountServiceAccountToken": true,
	    "imagePullSecrets": [{"name": "pull"}],
	    "tolerations": [{"key": "node.kubernetes.io/not-ready"}],
	    "containers": [{
	      "env": [
	        {"name": "HOST", "value": "a.example.com"}, {"name": "DB_PASSWORD", "value": "HUSH"},
	        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "a"}}}, {"name": "EMPTY", "value": ""}],
	      "args": ["--v=2", "--token", "HUSH", "--password=HUSH", "serve", "-p", "HUSH", "-p", "80", "-u", "me:HUSH"]}],
	    "plan": [{"resource": {"kind": "Secret", "manifest": "{\"kind\":\"Secret\",\"stringData\":{\"a\":\"HUSH\"},\"data\":\"HUSH\"}"}}],
	    "count": 9007199254740993
	  }
	}`
	const want = `{
	  "kind": "Deployment",
	  "metadata": {"name": "a", "annotations": {
	    "example.com/note": "fine", "example.com/api-token": "[redacted]",
	    "alm-examples": "[{\"data\":{\"a\":\"[redacted]\"},\"kind\":\"Secret\"},{\"spec\":{\"password\":\"[redacted]\",\"size\":3}}]"}},
	  "spec": {
	    "caBundle": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUI=",
	    "automountServiceAccountToken": true,
	    "imagePullSecrets": [{"name": "pull"}],
	    "tolerations": [{"key": "node.kubernetes.io/not-ready"}],
	    "containers": [{
	      "env": [
	        {"name": "HOST", "value": "HOSTVALUE"}, {"name": "DB_PASSWORD", "value": "[redacted]"},
	        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "a"}}}, {"name": "EMPTY", "value": ""}],
	      "args": ["--v=2", "--token", "[redacted]", "--password=[redacted]", "serve", "-p", "[redacted]", "-p", "80", "-u", "[redacted]"]}],
	    "plan": [{"resource": {"kind": "Secret", "manifest": "{\"data\":\"[redacted]\",\"kind\":\"Secret\",\"stringData\":{\"a\":\"[redacted]\"}}"}}],
	    "count": 9007199254740993
	  }
	}`
	for env, host := range map[bool]string{false: redact.Mark, true: "a.example.com"} {
		before := read(t, object)
		got := redact.Policy{Env: env}.Object(before)
		if diff := cmp.Diff(read(t, strings.ReplaceAll(want, "HOSTVALUE", host)), got); diff != "" {
			t.Errorf("environment shown: %v (-want +got):\n%s", env, diff)
		}
		if diff := cmp.Diff(read(t, object), before); diff != "" {
			t.Errorf("the object itself was changed:\n%s", diff)
		}
		if again := (redact.Policy{Env: env}).Object(got); !cmp.Equal(got, again) {
			t.Errorf("a second time it differs:\n%s", cmp.Diff(got, again))
		}
	}
}

func read(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	decoder := json.NewDecoder(strings.NewReader(strings.ReplaceAll(text, "HUSH", hush)))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		t.Fatal(err)
	}
	return object
}
