// Package audit reads the audit log of an API server.
package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Request is a request that an API server answered.
type Request struct {
	// User is the user who sent the request.
	User string
	// Verb is a verb of Kubernetes' authorization, such as get, list or patch.
	Verb string
	// Resource is RESOURCE.GROUP, followed by /SUBRESOURCE if there is one. For a request without a
	// resource it is the path.
	Resource string
	// Namespace and Name identify the object; empty if the request names none.
	Namespace, Name string
	// Code is the HTTP status of the answer.
	Code int
	// At is the time at which the request arrived.
	At time.Time
}

// Reads reports whether the request changes nothing. A request such as an access review is a read
// although it is a create.
func (r Request) Reads() bool {
	if slices.Contains([]string{"get", "list", "watch"}, r.Verb) {
		return true
	}
	_, group, _ := strings.Cut(r.Resource, ".")
	return group == "authorization.k8s.io" || group == "authentication.k8s.io"
}

// event holds the fields used of an event of audit.k8s.io/v1.
type event struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received time.Time `json:"requestReceivedTimestamp"`
}

func (e *event) request() Request {
	r := Request{User: e.User.Username, Verb: e.Verb, Code: e.ResponseStatus.Code, At: e.Received}
	ref := e.ObjectRef
	if ref == nil {
		r.Resource, _, _ = strings.Cut(e.RequestURI, "?")
		return r
	}
	r.Resource, r.Namespace, r.Name = ref.Resource, ref.Namespace, ref.Name
	if ref.APIGroup != "" {
		r.Resource += "." + ref.APIGroup
	}
	if ref.Subresource != "" {
		r.Resource += "/" + ref.Subresource
	}
	return r
}

// Log is an audit log that is still being written.
type Log struct {
	path string
	read int64
}

// Open returns a log whose file may not exist yet.
func Open(path string) *Log { return &Log{path: path} }

// Next returns the requests written since the last call.
func (l *Log) Next() (_ []Request, err error) {
	file, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Seek(l.read, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	var requests []Request
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // a line without an end is still being written
			return requests, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("reading the audit log at byte %d: %w", l.read, err)
		}
		l.read += int64(len(line))
		requests = append(requests, e.request())
	}
}
