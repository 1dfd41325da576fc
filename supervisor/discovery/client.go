package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// client sends probes to an API server.
type client struct {
	rest    rest.Interface
	now     func() time.Time
	timeout time.Duration // of one request
}

// newClient returns a client for the API server of a configuration.
func newClient(cfg *rest.Config, timeout time.Duration, now func() time.Time) (*client, error) {
	own := rest.CopyConfig(cfg)
	own.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	own.APIPath, own.GroupVersion = "/", nil
	c, err := rest.UnversionedRESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("preparing to ask the API server at %s which APIs it serves: %w", cfg.Host, err)
	}
	return &client{rest: c, now: now, timeout: timeout}, nil
}

// check is the state of a check of one target.
type check struct {
	*client

	facts  Facts
	result Result
	user   string
	// resourceErr and discoveryErr are the errors of the answers.
	resourceErr, discoveryErr error
}

// check sends probes until there is a verdict. Errors in the answers are part of the result.
func (c *client) check(ctx context.Context, setting Setting, target Target) (Result, error) {
	k := &check{client: c, facts: Facts{Incomplete: target.incomplete(), WithOperator: target.Operator != OperatorRef{}}}
	k.result.Target = target
	for {
		step := Next(setting, k.facts)
		if step.Probe == ProbeNone {
			return k.conclude(step.Verdict)
		}
		k.send(ctx, step.Probe)
	}
}

// send sends a probe, and records the answer.
func (k *check) send(ctx context.Context, probe Probe) {
	switch probe {
	case ProbeResource:
		k.resourceErr = k.get(ctx, resourcePath(k.result.Target), map[string]string{"limit": "1"}, nil)
		k.facts.Resource = answerTo(k.resourceErr)
	case ProbeDiscovery:
		k.probeDiscovery(ctx)
	case ProbeBackend:
		k.probeBackend(ctx)
	case ProbeOperator:
		e := combine(k.probeOperator(ctx))
		k.facts.Operator, k.result.Operator = e.state, e.operator
	case ProbeUser:
		k.facts.UserProbed = true
		k.user = k.userName(ctx)
	case ProbeNone:
	}
}

// conclude completes the result.
func (k *check) conclude(verdict Verdict) (Result, error) {
	r := k.result
	r.Verdict, r.At = verdict, k.now()
	if verdict.Outcome != Installed && verdict.Outcome != Degraded {
		r.Cause = errors.Join(k.resourceErr, k.discoveryErr)
		if r.Detail == "" && verdict.Outcome != NotInstalled {
			r.Detail = firstMessage(k.resourceErr, k.discoveryErr)
		}
	}
	if verdict.Outcome != Forbidden {
		return r, nil
	}
	var err error
	r.Grant, err = missingPermissions(r.Target, verdict.Reason, k.user)
	return r, err
}

// firstMessage returns the text of the first error, on one line.
func firstMessage(errs ...error) string {
	for _, err := range errs {
		if err != nil {
			return strings.Join(strings.Fields(err.Error()), " ")
		}
	}
	return ""
}

// get reads the document at a path into a value, unless it is nil.
func (c *client) get(ctx context.Context, path string, params map[string]string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request := c.rest.Get().AbsPath(path).MaxRetries(0).SetHeader("Accept", "application/json")
	for name, value := range params {
		request.Param(name, value)
	}
	raw, err := contentOf(request.Do(ctx))
	if cause := ctx.Err(); err != nil && cause != nil && !errors.Is(err, cause) {
		// If the client stops waiting for its rate limiter, its error does not name the cause.
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("reading the answer for %s: %w", path, err)
	}
	return nil
}

// contentOf returns the content of an answer. Its error has the message of the API server.
func contentOf(answer rest.Result) ([]byte, error) {
	if err := answer.Error(); err != nil {
		return nil, err
	}
	return answer.Raw()
}

// apiPath returns the path of a group, or of a version of it, in the discovery API.
func apiPath(gv schema.GroupVersion) string {
	path := "/apis/" + gv.Group
	if gv.Group == "" {
		path = "/api"
	}
	if gv.Version == "" {
		return path
	}
	return path + "/" + gv.Version
}

func resourcePath(t Target) string {
	path := apiPath(t.GroupVersion())
	if t.Namespace != "" {
		path += "/namespaces/" + t.Namespace
	}
	return path + "/" + t.Resource
}

// probeDiscovery asks the discovery API for the version of the target if it has one, or else for the served versions.
func (k *check) probeDiscovery(ctx context.Context) {
	gv := k.result.Target.GroupVersion()
	if gv.Version != "" {
		resource, answer, err := k.kindAt(ctx, gv)
		k.facts.Discovery, k.discoveryErr = answer, err
		if answer == OK {
			k.complete(gv.Version, resource)
		}
		if answer == OK || (answer != NotFound && answer != NoKind) {
			return
		}
	}
	k.probeVersions(ctx, gv)
}

// probeVersions asks which versions of the group serve the kind.
func (k *check) probeVersions(ctx context.Context, gv schema.GroupVersion) {
	versions, err := k.versions(ctx, gv.Group)
	if err != nil {
		k.discoveryErr = err
		k.facts.Discovery = answerTo(err)
		if k.facts.Discovery == NotFound {
			k.facts.Discovery = NoGroup
		}
		return
	}
	var with []string
	for _, version := range versions {
		resource, answer, err := k.kindAt(ctx, schema.GroupVersion{Group: gv.Group, Version: version})
		switch {
		case answer == OK && gv.Version == "":
			k.facts.Discovery, k.discoveryErr = OK, nil
			k.complete(version, resource)
			return
		case answer == OK:
			with = append(with, version)
		case answer != NoKind && answer != NotFound:
			k.facts.Discovery, k.discoveryErr = answer, err
			k.result.Target.Version = version
			return
		}
	}
	k.facts.Discovery, k.result.Served = NoKind, versions
	if len(with) > 0 {
		k.facts.Discovery, k.result.Served = NoVersion, with
	}
}

// complete fills in the resource that was found. For a cluster-scoped resource, it removes the namespace.
func (k *check) complete(version string, resource metav1.APIResource) {
	t := &k.result.Target
	t.Version, t.Resource, t.Kind = version, resource.Name, resource.Kind
	if !resource.Namespaced {
		t.Namespace = ""
	}
}

// kindAt looks for the kind at one version of its group.
func (k *check) kindAt(ctx context.Context, gv schema.GroupVersion) (metav1.APIResource, Answer, error) {
	var served metav1.APIResourceList
	if err := k.get(ctx, apiPath(gv), nil, &served); err != nil {
		return metav1.APIResource{}, answerTo(err), err
	}
	t := k.result.Target
	i := slices.IndexFunc(served.APIResources, func(r metav1.APIResource) bool {
		return !strings.Contains(r.Name, "/") && (t.Kind == "" || r.Kind == t.Kind) && (t.Resource == "" || r.Name == t.Resource)
	})
	if i < 0 {
		return metav1.APIResource{}, NoKind, nil
	}
	return served.APIResources[i], OK, nil
}

// versions returns the versions of a group, the preferred one first.
func (k *check) versions(ctx context.Context, group string) ([]string, error) {
	if group == "" {
		var core metav1.APIVersions
		err := k.get(ctx, "/api", nil, &core)
		return core.Versions, err
	}
	var served metav1.APIGroup
	if err := k.get(ctx, "/apis/"+group, nil, &served); err != nil {
		return nil, err
	}
	versions := []string{served.PreferredVersion.Version}
	for _, v := range served.Versions {
		if v.Version != versions[0] {
			versions = append(versions, v.Version)
		}
	}
	return versions, nil
}

// apiService holds the fields of an APIService that are read.
type apiService struct {
	Spec struct {
		Service *struct{ Namespace, Name string }
	}
	Status struct {
		Conditions []metav1.Condition
	}
}

// probeBackend reads the state of the server behind the target from its APIService.
func (k *check) probeBackend(ctx context.Context) {
	var service apiService
	err := k.get(ctx, "/apis/apiregistration.k8s.io/v1/apiservices/"+k.result.Target.apiService(), nil, &service)
	switch {
	case err != nil:
		k.facts.Backend = BackendUnknown
	case service.Spec.Service == nil:
		k.facts.Backend = BackendUp
	default:
		k.facts.Backend = BackendUp
		for _, condition := range service.Status.Conditions {
			if condition.Type == "Available" && condition.Status != metav1.ConditionTrue {
				k.facts.Backend = BackendDown
				k.result.Detail = fmt.Sprintf("Service %s/%s: %s", service.Spec.Service.Namespace, service.Spec.Service.Name, condition.Message)
			}
		}
	}
}

// userName returns the user name that the API server reports; empty if it reports none.
func (k *check) userName(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	raw, err := contentOf(k.rest.Post().AbsPath("/apis/authentication.k8s.io/v1/selfsubjectreviews").MaxRetries(0).
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").
		Body([]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`)).Do(ctx))
	var review authenticationv1.SelfSubjectReview
	if err != nil || json.Unmarshal(raw, &review) != nil {
		return refusedUser(err)
	}
	return review.Status.UserInfo.Username
}

// refusal matches the user in an API server's refusal.
var refusal = regexp.MustCompile(`User ("(?:[^"\\]|\\.)*") cannot`)

// refusedUser returns the user that an error refuses; empty if it names none.
func refusedUser(err error) string {
	if err == nil {
		return ""
	}
	named := refusal.FindStringSubmatch(err.Error())
	if named == nil {
		return ""
	}
	name, err := strconv.Unquote(named[1])
	if err != nil {
		return ""
	}
	return name
}
