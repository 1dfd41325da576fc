package audit

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// line returns an event of a log with some fields.
func line(fields string) string {
	return `{"kind":"Event","requestReceivedTimestamp":"2026-01-02T03:04:05.000006Z","user":{"username":"u"},"responseStatus":{"code":200},` + fields + "}\n"
}

func TestNext(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	pod := line(`"verb":"get","objectRef":{"resource":"pods","namespace":"n","name":"p"}`)
	isPod := Request{User: "u", Verb: "get", Resource: "pods", Namespace: "n", Name: "p", Code: 200, At: at}
	cases := map[string]struct {
		reason string
		// parts are added to the file before each call of Next.
		parts []string
		want  [][]Request
	}{
		"None":  {"a log that does not exist has no requests", []string{""}, [][]Request{nil}},
		"Core":  {"a resource of the core group has no group", []string{pod}, [][]Request{{isPod}}},
		"Twice": {"a request is returned once", []string{pod, ""}, [][]Request{{isPod}, nil}},
		"Later": {"requests of a call follow those of the one before", []string{pod, pod + pod}, [][]Request{{isPod}, {isPod, isPod}}},
		"Partial": {
			"a last line without its end is read when it is complete",
			[]string{pod + pod[:20], pod[20:40], pod[40:]},
			[][]Request{{isPod}, nil, {isPod}},
		},
		"Subresource": {
			"a subresource follows the group",
			[]string{line(`"verb":"patch","objectRef":{"resource":"deployments","apiGroup":"apps","subresource":"status","namespace":"n","name":"d"}`)},
			[][]Request{{{User: "u", Verb: "patch", Resource: "deployments.apps/status", Namespace: "n", Name: "d", Code: 200, At: at}}},
		},
		"CoreSubresource": {
			"a subresource of the core group follows the resource",
			[]string{line(`"verb":"create","objectRef":{"resource":"serviceaccounts","subresource":"token","namespace":"n","name":"a"}`)},
			[][]Request{{{User: "u", Verb: "create", Resource: "serviceaccounts/token", Namespace: "n", Name: "a", Code: 200, At: at}}},
		},
		"Path": {
			"a request that names no resource is its path, without the query",
			[]string{line(`"verb":"get","requestURI":"/openapi/v3?hash=1"`)},
			[][]Request{{{User: "u", Verb: "get", Resource: "/openapi/v3", Code: 200, At: at}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			log := Open(path)
			for i, part := range tc.parts {
				if part != "" {
					add(t, path, part)
				}
				got, err := log.Next()
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				if diff := cmp.Diff(tc.want[i], got); diff != "" {
					t.Errorf("%s: call %d: -want +got:\n%s", tc.reason, i+1, diff)
				}
			}
		})
	}
}

func TestNextOfForeignText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	add(t, path, "no event\n")
	if _, err := Open(path).Next(); err == nil {
		t.Error("a line that is no JSON was accepted")
	}
	if _, err := Open(t.TempDir()).Next(); err == nil {
		t.Error("a folder was accepted")
	}
}

func add(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestReads(t *testing.T) {
	cases := map[string]struct {
		reason         string
		verb, resource string
		want           bool
	}{
		"Get":        {"get reads", "get", "pods", true},
		"List":       {"list reads", "list", "roles.rbac.authorization.k8s.io", true},
		"Watch":      {"watch reads", "watch", "pods", true},
		"Path":       {"a path is read", "get", "/openapi/v3", true},
		"Patch":      {"patch writes", "patch", "pods/status", false},
		"Role":       {"a Role is stored, though its group ends like that of reviews", "create", "roles.rbac.authorization.k8s.io", false},
		"Access":     {"a review of access is a question", "create", "selfsubjectaccessreviews.authorization.k8s.io", true},
		"Token":      {"a review of a token is a question", "create", "tokenreviews.authentication.k8s.io", true},
		"Collection": {"deletecollection writes", "deletecollection", "events.events.k8s.io", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (Request{Verb: tc.verb, Resource: tc.resource}).Reads(); got != tc.want {
				t.Errorf("%s: Reads() = %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
