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

// asker sends questions to an API server.
type asker struct {
	client rest.Interface
	now    func() time.Time
	// patience is the timeout of one request.
	patience time.Duration
}

// newAsker returns an asker for the API server of a configuration.
func newAsker(cfg *rest.Config, patience time.Duration, now func() time.Time) (*asker, error) {
	own := rest.CopyConfig(cfg)
	own.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	own.APIPath, own.GroupVersion = "/", nil
	client, err := rest.UnversionedRESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("preparing to ask the API server at %s which APIs it serves: %w", cfg.Host, err)
	}
	return &asker{client: client, now: now, patience: patience}, nil
}

// inquiry is the state of a check of one target.
type inquiry struct {
	*asker

	facts  Facts
	result Result
	user   string
	// resourceErr and discoveryErr are the errors of the answers.
	resourceErr, discoveryErr error
}

// find asks until there is a verdict. The error means that no question could be asked; errors in the answers
// are part of the result.
func (a *asker) find(ctx context.Context, setting Setting, target Target) (Result, error) {
	q := &inquiry{asker: a, facts: Facts{Incomplete: target.incomplete(), WithKeeper: target.Keeper != Keeper{}}}
	q.result.Target = target
	for {
		step := Next(setting, q.facts)
		if step.Ask == AskNothing {
			return q.conclude(step.Verdict)
		}
		q.put(ctx, step.Ask)
	}
}

// put asks a question, and records the answer.
func (q *inquiry) put(ctx context.Context, question Question) {
	switch question {
	case AskResource:
		q.resourceErr = q.get(ctx, resourcePath(q.result.Target), map[string]string{"limit": "1"}, nil)
		q.facts.Resource = answerTo(q.resourceErr)
	case AskDiscovery:
		q.discover(ctx)
	case AskBackend:
		q.askBackend(ctx)
	case AskKeeper:
		said := judge(q.askKeepers(ctx))
		q.facts.Upkeep, q.result.Keeper = said.state, said.keeper
	case AskUser:
		q.facts.UserAsked = true
		q.user = q.whoami(ctx)
	case AskNothing:
	}
}

// conclude completes the result.
func (q *inquiry) conclude(verdict Verdict) (Result, error) {
	r := q.result
	r.Verdict, r.At = verdict, q.now()
	if verdict.Outcome != Installed && verdict.Outcome != Degraded {
		r.Cause = errors.Join(q.resourceErr, q.discoveryErr)
		if r.Detail == "" && verdict.Outcome != NotInstalled {
			r.Detail = firstMessage(q.resourceErr, q.discoveryErr)
		}
	}
	if verdict.Outcome != Forbidden {
		return r, nil
	}
	var err error
	r.Grant, err = grant(r.Target, verdict.Reason, q.user)
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

// get reads the document at a path. A document that cannot be decoded is an error like any other.
func (a *asker) get(ctx context.Context, path string, params map[string]string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	request := a.client.Get().AbsPath(path).MaxRetries(0).SetHeader("Accept", "application/json")
	for name, value := range params {
		request.Param(name, value)
	}
	raw, err := contentOf(request.Do(ctx))
	if cause := ctx.Err(); err != nil && cause != nil && !errors.Is(err, cause) {
		// If the client stops waiting for its rate limiter, its error does not name the cause.
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if err != nil || into == nil {
		return err //nolint:wrapcheck // the client names the request
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("reading the answer for %s: %w", path, err)
	}
	return nil
}

// contentOf returns the content of an answer. Its error has the message of the API server.
func contentOf(answer rest.Result) ([]byte, error) {
	if err := answer.Error(); err != nil {
		return nil, err //nolint:wrapcheck // the client names the request
	}
	return answer.Raw() //nolint:wrapcheck // the same
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

// discover asks the discovery API for the version of the target if it has one, or else for the served versions.
func (q *inquiry) discover(ctx context.Context) {
	gv := q.result.Target.GroupVersion()
	if gv.Version != "" {
		resource, answer, err := q.kindAt(ctx, gv)
		q.facts.Discovery, q.discoveryErr = answer, err
		if answer == OK {
			q.complete(gv.Version, resource)
		}
		if answer == OK || (answer != NotFound && answer != NoKind) {
			return
		}
	}
	q.discoverVersions(ctx, gv)
}

// discoverVersions asks which versions of the group serve the kind.
func (q *inquiry) discoverVersions(ctx context.Context, gv schema.GroupVersion) {
	versions, err := q.versions(ctx, gv.Group)
	if err != nil {
		q.discoveryErr = err
		q.facts.Discovery = answerTo(err)
		if q.facts.Discovery == NotFound {
			q.facts.Discovery = NoGroup
		}
		return
	}
	var with []string
	for _, version := range versions {
		resource, answer, err := q.kindAt(ctx, schema.GroupVersion{Group: gv.Group, Version: version})
		switch {
		case answer == OK && gv.Version == "":
			q.facts.Discovery, q.discoveryErr = OK, nil
			q.complete(version, resource)
			return
		case answer == OK:
			with = append(with, version)
		case answer != NoKind && answer != NotFound:
			q.facts.Discovery, q.discoveryErr = answer, err
			q.result.Target.Version = version
			return
		}
	}
	q.facts.Discovery, q.result.Served = NoKind, versions
	if len(with) > 0 {
		q.facts.Discovery, q.result.Served = NoVersion, with
	}
}

// complete fills in the resource that was found. For a cluster-scoped resource, it removes the namespace.
func (q *inquiry) complete(version string, resource metav1.APIResource) {
	t := &q.result.Target
	t.Version, t.Resource, t.Kind = version, resource.Name, resource.Kind
	if !resource.Namespaced {
		t.Namespace = ""
	}
}

// kindAt looks for the kind at one version of its group.
func (q *inquiry) kindAt(ctx context.Context, gv schema.GroupVersion) (metav1.APIResource, Answer, error) {
	var served metav1.APIResourceList
	if err := q.get(ctx, apiPath(gv), nil, &served); err != nil {
		return metav1.APIResource{}, answerTo(err), err
	}
	t := q.result.Target
	i := slices.IndexFunc(served.APIResources, func(r metav1.APIResource) bool {
		return !strings.Contains(r.Name, "/") && (t.Kind == "" || r.Kind == t.Kind) && (t.Resource == "" || r.Name == t.Resource)
	})
	if i < 0 {
		return metav1.APIResource{}, NoKind, nil
	}
	return served.APIResources[i], OK, nil
}

// versions returns the versions of a group, the preferred one first.
func (q *inquiry) versions(ctx context.Context, group string) ([]string, error) {
	if group == "" {
		var core metav1.APIVersions
		err := q.get(ctx, "/api", nil, &core)
		return core.Versions, err
	}
	var served metav1.APIGroup
	if err := q.get(ctx, "/apis/"+group, nil, &served); err != nil {
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

// askBackend reads the state of the server behind the target from its APIService.
func (q *inquiry) askBackend(ctx context.Context) {
	var service apiService
	err := q.get(ctx, "/apis/apiregistration.k8s.io/v1/apiservices/"+q.result.Target.apiService(), nil, &service)
	switch {
	case err != nil:
		q.facts.Backend = BackendUnknown
	case service.Spec.Service == nil:
		q.facts.Backend = BackendUp
	default:
		q.facts.Backend = BackendUp
		for _, condition := range service.Status.Conditions {
			if condition.Type == "Available" && condition.Status != metav1.ConditionTrue {
				q.facts.Backend = BackendDown
				q.result.Detail = fmt.Sprintf("Service %s/%s: %s", service.Spec.Service.Namespace, service.Spec.Service.Name, condition.Message)
			}
		}
	}
}

// whoami returns the user name that the API server reports; empty if it reports none.
func (q *inquiry) whoami(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, q.patience)
	defer cancel()
	raw, err := contentOf(q.client.Post().AbsPath("/apis/authentication.k8s.io/v1/selfsubjectreviews").MaxRetries(0).
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").
		Body([]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`)).Do(ctx))
	var review authenticationv1.SelfSubjectReview
	if err != nil || json.Unmarshal(raw, &review) != nil {
		return refused(err)
	}
	return review.Status.UserInfo.Username
}

// refusal matches the user in an API server's refusal.
var refusal = regexp.MustCompile(`User ("(?:[^"\\]|\\.)*") cannot`)

// refused returns the user that an error refuses; empty if it names none.
func refused(err error) string {
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
