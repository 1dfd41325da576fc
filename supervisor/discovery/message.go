package discovery

import (
	"fmt"
	"strings"
)

// sentence is the text for a reason, and the remedy.
type sentence struct{ what, remedy string }

// sentences are the texts of the reasons. Their placeholders are: {api}, the target; {name}, its resource as
// roles name it; {group}, its group; {served}, the served versions; {service}, the APIService; {operator}, the
// object that shows the operator, with its version; {lease}, the Lease of its leader; and {detail}, the text of
// the answer.
var sentences = map[Reason]sentence{
	ReasonDisabled:        {"{api} is disabled and was not checked", ""},
	ReasonServed:          {"{api} is installed", ""},
	ReasonOperatorRunning: {"{api} is installed, and its operator runs: {operator}", ""},
	ReasonOperatorUnknown: {"{api} is installed; the state of its operator is unknown{detail}", ""},

	ReasonNoGroup:   {"{api} is not installed: the API server does not serve the group {group}", "install the operator of the API, or its CustomResourceDefinition"},
	ReasonNoVersion: {"{api} is not installed: the API server serves the kind only at {served}", "use one of these versions, or update the operator of the API"},
	ReasonNoKind:    {"{api} is not installed: the API server serves the group {group} ({served}) without this kind", "install the operator of the kind, or correct the name of the kind"},

	ReasonMayNotList:     {"the API is installed, but you lack permission to list {name}{detail}", "ask an administrator to apply the missing RBAC rules"},
	ReasonMayNotDiscover: {"cannot check whether {api} is installed: you lack permission to use the discovery API{detail}", "ask an administrator to bind the ClusterRole system:discovery to you"},

	ReasonUnauthorized:  {"cannot check {api}: the API server rejects your credentials{detail}", "log in again, or check the user in the context of the kubeconfig"},
	ReasonUntrusted:     {"cannot check {api}: TLS with the API server fails{detail}", "check the certificate authority and the server name in the kubeconfig, and the clock"},
	ReasonUnconnected:   {"cannot check {api}: there is no connection to the API server{detail}", "check the server in the context of the kubeconfig, the network, and proxies"},
	ReasonTimedOut:      {"cannot check {api}: the API server did not answer in time{detail}", "check the load of the API server, and the network"},
	ReasonThrottled:     {"cannot check {api}: the API server receives too many requests (429){detail}", "try again later, or check API Priority and Fairness of the API server"},
	ReasonServerError:   {"cannot check {api}: the API server fails{detail}", "check the log of the API server, and the conversion webhook of the kind if it has one"},
	ReasonBackendDown:   {"{api} cannot be used: the server of APIService {service} is not available{detail}", "check the Service of the APIService and its pods; delete the APIService if you no longer need the API"},
	ReasonContradiction: {"cannot check {api}: the discovery API lists it, but the API server does not find it{detail}", "try again; this happens while a CustomResourceDefinition is installed or removed"},

	ReasonNoOperator:   {"{api} is installed, but no operator reconciles it{detail}", "install the operator, or delete the CustomResourceDefinition that it left"},
	ReasonOperatorDown: {"{api} is installed, but its operator does not run: {operator}{detail}", "check its pods and events"},
	ReasonLeaseStale:   {"{api} is installed, but the leader of its operator does not renew {lease}{detail}", "check the pods that hold the Lease"},
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
	if r.Operator.Detail != "" {
		detail = r.Operator.Detail
	}
	if detail != "" {
		detail = ": " + detail
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
		"{service}", r.Target.apiService(), "{operator}", r.Operator.String(), "{lease}", r.Operator.Name, "{detail}", detail,
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
