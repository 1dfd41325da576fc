package apiproxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Call is one request to the API server.
type Call struct {
	// Verb is what Kubernetes calls it: get, list, watch, create, update, patch, apply,
	// delete, deletecollection; the HTTP method in lower case for paths that are no
	// resources, whose Path says the rest.
	Verb, Path string
	// Group, Resource, Subresource, Namespace and Name say of what; a part that a call
	// does not have is empty. Name is that of the object in the body where something is
	// created, and may be empty where the server chooses it.
	Group, Resource, Subresource, Namespace, Name string
	// UserAgent is the client's.
	UserAgent string
}

// Mutates says whether the call changes something.
func (c Call) Mutates() bool {
	switch c.Verb {
	case "get", "list", "watch", "head", "options":
		return false
	default:
		return true
	}
}

// String names the call as "patch subscriptions/status ns/name".
func (c Call) String() string {
	if c.Resource == "" {
		return c.Verb + " " + c.Path
	}
	what := c.Resource
	if c.Group != "" {
		what += "." + c.Group
	}
	if c.Subresource != "" {
		what += "/" + c.Subresource
	}
	switch {
	case c.Namespace != "" && c.Name != "":
		return fmt.Sprintf("%s %s %s/%s", c.Verb, what, c.Namespace, c.Name)
	case c.Namespace != "":
		return fmt.Sprintf("%s %s in %s", c.Verb, what, c.Namespace)
	case c.Name != "":
		return fmt.Sprintf("%s %s %s", c.Verb, what, c.Name)
	default:
		return c.Verb + " " + what
	}
}

// maxBody bounds the bodies that are read for the name of what is created.
const maxBody = 8 << 20

// callOf names a request. The body of one that creates something is read, and put back.
func callOf(r *http.Request) (Call, error) {
	c := located(strings.Split(strings.Trim(r.URL.Path, "/"), "/"))
	c.Verb, c.Path, c.UserAgent = strings.ToLower(r.Method), r.URL.Path, r.UserAgent()
	if c.Resource == "" {
		return c, nil
	}
	c.Verb = verbOf(r, c.Name != "")
	if c.Verb != "create" || c.Name != "" {
		return c, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return c, fmt.Errorf("reading the body of %s: %w", c, err)
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	var object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	// What is no JSON has no name that could be read.
	if json.Unmarshal(body, &object) == nil {
		c.Name = object.Metadata.Name
	}
	return c, nil
}

// located reads which resource a path names. A path of another form has none.
func located(parts []string) Call {
	var c Call
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		c.Group, parts = parts[1], parts[3:]
	default:
		return c
	}
	// A namespace is a resource too, with subresources of its own.
	if len(parts) >= 3 && parts[0] == "namespaces" && !slices.Contains([]string{"status", "finalize"}, parts[2]) {
		c.Namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "", "")
	c.Resource, c.Name, c.Subresource = parts[0], parts[1], parts[2]
	return c
}

// verbOf says what a request does with a resource.
func verbOf(r *http.Request, named bool) string {
	switch r.Method {
	case http.MethodGet:
		watch := r.URL.Query().Get("watch")
		switch {
		case watch == "true" || watch == "1":
			return "watch"
		case named:
			return "get"
		default:
			return "list"
		}
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") {
			return "apply"
		}
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	default:
		return strings.ToLower(r.Method)
	}
}
