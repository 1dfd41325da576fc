package discovery

import (
	"fmt"
	"strings"
)

// sentence is the text for a reason, and the remedy.
type sentence struct{ what, remedy string }

// sentences are the texts of the reasons. Their placeholders are: {api}, the target; {name}, its resource as
// roles name it; {group}, its group; {served}, the served versions; {service}, the APIService; {holder}, who
// reconciles the kind; {keeper}, the same with the version of the operator; and {detail}, the text of the
// answer.
var sentences = map[Reason]sentence{
	ReasonDisabled:      {"{api} is disabled, and was not looked for", ""},
	ReasonServed:        {"{api} is installed", ""},
	ReasonKept:          {"{api} is installed, {keeper} looks after it", ""},
	ReasonKeeperUnknown: {"{api} is installed; who looks after it is not known{detail}", ""},

	ReasonNoGroup:   {"{api} is not installed: the API server serves no group {group}", "install what brings it, or its CustomResourceDefinition"},
	ReasonNoVersion: {"{api} is not installed: the API server serves the kind at {served} only", "ask for one of these versions, or bring what installs it up to date"},
	ReasonNoKind:    {"{api} is not installed: the API server serves the group {group} ({served}), without this kind", "install what brings the kind, or correct its name"},

	ReasonMayNotList:     {"{api} is installed, and you may not list {name}{detail}", "have an administrator apply the rights that are missing"},
	ReasonMayNotDiscover: {"whether {api} is installed is not known: you may not ask the discovery API{detail}", "have an administrator bind the ClusterRole system:discovery to you"},

	ReasonUnauthorized:  {"whether {api} can be used is not known: the API server does not accept your credentials{detail}", "log in anew, or look at the user of the kubeconfig's context"},
	ReasonUntrusted:     {"whether {api} can be used is not known: TLS with the API server fails{detail}", "look at the certificate authority and the server's name in the kubeconfig, and at the clock"},
	ReasonUnconnected:   {"whether {api} can be used is not known: there is no connection to the API server{detail}", "look at the server of the kubeconfig's context, at the network and at proxies"},
	ReasonTimedOut:      {"whether {api} can be used is not known: no answer came in time{detail}", "look at the load of the API server, and at the network between"},
	ReasonThrottled:     {"whether {api} can be used is not known: the API server answers that there are too many requests (429){detail}", "ask again later; the API server's priority and fairness say who takes how much"},
	ReasonServerError:   {"whether {api} can be used is not known: the API server fails{detail}", "look at the log of the API server, and at the conversion webhook of the kind if it has one"},
	ReasonBackendDown:   {"{api} cannot be used: the server behind the APIService {service} is not available{detail}", "look at the Service that the APIService names, and at its pods; or delete the APIService if the API is not wanted any more"},
	ReasonContradiction: {"whether {api} can be used is not known: the discovery API lists it, and the API server does not find it{detail}", "ask again in a moment; it is so while a CustomResourceDefinition is being installed or removed"},

	ReasonNobody:     {"{api} is installed, and nobody looks after it{detail}", "install the operator, or remove the CustomResourceDefinition that it left"},
	ReasonKeeperDown: {"{api} is installed, and {keeper} that looks after it does not run{detail}", "look at its pods and events"},
	ReasonLeaseStale: {"{api} is installed, and {holder} that looks after it gives no sign of life{detail}", "look at the pods that hold the Lease"},
}

// What describes the outcome, in a clause.
func (r *Result) What() string { return r.fill(sentences[r.Reason].what) }

// Remedy returns what to do; empty if nothing is to be done.
func (r *Result) Remedy() string { return r.fill(sentences[r.Reason].remedy) }

// Message returns a text that names the API, the outcome, and the remedy.
func (r *Result) Message() string {
	if remedy := r.Remedy(); remedy != "" {
		return r.What() + "; " + remedy
	}
	return r.What()
}

func (r *Result) fill(text string) string {
	detail := r.Detail
	if r.Keeper.Detail != "" {
		detail = r.Keeper.Detail
	}
	if detail != "" {
		detail = ": " + detail
	}
	keeper := r.Keeper.Name
	if r.Keeper.Version != "" {
		keeper += " " + r.Keeper.Version
	}
	group := r.Target.Group
	if group == "" {
		group = "core"
	}
	served := strings.Join(r.Served, ", ")
	if served == "" {
		served = "no version"
	}
	return strings.NewReplacer(
		"{api}", r.Target.String(), "{name}", r.Target.plural(), "{group}", group, "{served}", served,
		"{service}", r.Target.apiService(), "{keeper}", keeper, "{holder}", r.Keeper.Name, "{detail}", detail,
	).Replace(text)
}

// plural returns the resource of the target as roles name it, with its group.
func (t Target) plural() string {
	name := t.Resource
	if name == "" {
		name = t.Kind
	}
	if t.Group != "" {
		name += "." + t.Group
	}
	if t.Namespace != "" {
		return name + " in namespace " + t.Namespace
	}
	return name
}

// apiService returns the name of the APIService of the API.
func (t Target) apiService() string { return fmt.Sprintf("%s.%s", t.Version, t.Group) }
