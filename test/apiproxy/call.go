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
	// Verb is the Kubernetes verb: get, list, watch, create, update, patch, apply, delete or
	// deletecollection. For paths that are not resources it is the HTTP method in lower case, and
	// Path is the path.
	Verb, Path string
	// Group, Resource, Subresource, Namespace and Name identify the object. A part that a call
	// lacks is empty. Name is the name of the object in the body of a create; it may be empty if
	// the server generates it.
	Group, Resource, Subresource, Namespace, Name string
	// UserAgent is the user agent of the client.
	UserAgent string
}

// Mutates reports whether the call changes something.
func (c Call) Mutates() bool {
	switch c.Verb {
	case "get", "list", "watch", "head", "options":
		return false
	default:
		return true
	}
}

// String returns the call as "patch subscriptions/status ns/name".
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

// maxBody bounds the body that is read for the name of a created object.
const maxBody = 8 << 20

// callOf returns the call of a request. It reads the body of a create and restores it.
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
	// A body that is not JSON has no name that can be read.
	if json.Unmarshal(body, &object) == nil {
		c.Name = object.Metadata.Name
	}
	return c, nil
}

// located returns the resource in a path. A path of another form has none.
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
	// A namespace is itself a resource with subresources.
	if len(parts) >= 3 && parts[0] == "namespaces" && !slices.Contains([]string{"status", "finalize"}, parts[2]) {
		c.Namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "", "")
	c.Resource, c.Name, c.Subresource = parts[0], parts[1], parts[2]
	return c
}

// verbOf returns the verb of a request for a resource.
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
