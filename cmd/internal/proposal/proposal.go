// Package proposal says what an InstallPlan would change, so that a person can decide
// whether to approve it. It is pure, and goes by what the plan itself holds.
package proposal

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// Proposal is what a plan would change.
type Proposal struct {
	Namespace   string `json:"namespace"`
	InstallPlan string `json:"installPlan"`
	// Phase is that of the plan, and Approved whether it has been approved.
	Phase    string `json:"phase"`
	Approved bool   `json:"approved"`
	// Subscriptions are those that it serves.
	Subscriptions []string  `json:"subscriptions,omitempty"`
	Versions      []Version `json:"versions"`
	// Definitions are the CustomResourceDefinitions that it brings.
	Definitions []Definition `json:"definitions,omitempty"`
	// ClusterRules are what operators may do in the whole cluster afterwards and, as far
	// as is known, may not do yet: a line each.
	ClusterRules []string `json:"clusterRules,omitempty"`
	// Objects counts everything that the plan applies.
	Objects int `json:"objects"`
	// Unread counts what the plan only refers to, because it is too large to be in it.
	Unread int `json:"unread,omitempty"`
}

// Version is a version that is to be installed.
type Version struct {
	// Name is that of the ClusterServiceVersion.
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Replaces is the one that goes, if any, and From its version.
	Replaces string `json:"replaces,omitempty"`
	From     string `json:"from,omitempty"`
}

// Definition is a CustomResourceDefinition.
type Definition struct {
	Name string `json:"name"`
	// New says that no operator of the namespace provides it yet.
	New bool `json:"new"`
}

// Of says what a plan would change, beside the versions that are there.
func Of(p *operatorsv1alpha1.InstallPlan, present []operatorsv1alpha1.ClusterServiceVersion) Proposal {
	q := Proposal{
		Namespace: p.Namespace, InstallPlan: p.Name, Phase: string(p.Status.Phase), Approved: p.Spec.Approved,
		Subscriptions: Served(p), Objects: len(p.Status.Plan),
	}
	for _, name := range p.Spec.ClusterServiceVersionNames {
		q.Versions = append(q.Versions, versionOf(p, name, present))
	}
	known := knownRules(p.Namespace, present)
	for _, step := range p.Status.Plan {
		if step != nil {
			q.step(step, present, known)
		}
	}
	slices.Sort(q.ClusterRules)
	q.ClusterRules = slices.Compact(q.ClusterRules)
	return q
}

// step adds what one step would change.
func (q *Proposal) step(step *operatorsv1alpha1.Step, present []operatorsv1alpha1.ClusterServiceVersion, known map[string]bool) {
	u, ref, err := plan.Manifest(step)
	if ref != nil || err != nil {
		q.Unread++
	}
	switch step.Resource.Kind {
	case "CustomResourceDefinition":
		q.Definitions = append(q.Definitions, Definition{Name: step.Resource.Name, New: !provided(q.Namespace, step.Resource.Name, present)})
	case "ClusterRole":
		if u == nil {
			return
		}
		var role rbacv1.ClusterRole
		if text, err := json.Marshal(u.Object); err != nil || json.Unmarshal(text, &role) != nil {
			q.Unread++
			return
		}
		for i := range role.Rules {
			if rule := Rule(&role.Rules[i]); !known[rule] {
				q.ClusterRules = append(q.ClusterRules, rule)
			}
		}
	}
}

// Served names the Subscriptions that a plan serves, by what is written on it.
func Served(p *operatorsv1alpha1.InstallPlan) []string {
	var names []string
	for key, name := range p.Annotations {
		if strings.HasPrefix(key, api.PrefixServes) {
			names = append(names, name)
		}
	}
	for _, ref := range p.OwnerReferences {
		if ref.Kind == operatorsv1alpha1.SubscriptionKind {
			names = append(names, ref.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// VersionIn gives the version of a ClusterServiceVersion that a plan holds; empty when
// it does not.
func VersionIn(p *operatorsv1alpha1.InstallPlan, name string) string {
	return planned(p, name).Spec.Version
}

// csv is what is read of a ClusterServiceVersion in a plan.
type csv struct {
	Spec struct {
		Version  string `json:"version"`
		Replaces string `json:"replaces"`
	} `json:"spec"`
}

func planned(p *operatorsv1alpha1.InstallPlan, name string) csv {
	var found csv
	for _, step := range p.Status.Plan {
		if step == nil || step.Resource.Kind != operatorsv1alpha1.ClusterServiceVersionKind || step.Resource.Name != name {
			continue
		}
		if json.Unmarshal([]byte(step.Resource.Manifest), &found) == nil {
			return found
		}
	}
	return csv{}
}

func versionOf(p *operatorsv1alpha1.InstallPlan, name string, present []operatorsv1alpha1.ClusterServiceVersion) Version {
	there := planned(p, name)
	v := Version{Name: name, Version: cmp.Or(there.Spec.Version, Suffix(name)), Replaces: there.Spec.Replaces}
	for i := range present {
		if present[i].Name == v.Replaces && present[i].Namespace == p.Namespace {
			v.From = cmp.Or(Declared(&present[i]), Suffix(v.Replaces))
			return v
		}
	}
	// A plan that was recreated after a version was taken away replaces nothing.
	v.Replaces = ""
	return v
}

// Declared is the version that a ClusterServiceVersion says it is; empty when it says
// nothing.
func Declared(v *operatorsv1alpha1.ClusterServiceVersion) string {
	if text := v.Spec.Version.String(); text != "0.0.0" {
		return text
	}
	return ""
}

// Suffix is what the name of a ClusterServiceVersion says of its version, by custom:
// NAME.vVERSION.
func Suffix(name string) string {
	if _, after, found := strings.Cut(name, "."); found {
		return strings.TrimPrefix(after, "v")
	}
	return name
}

// provided says whether a version of the namespace provides a definition.
func provided(namespace, name string, present []operatorsv1alpha1.ClusterServiceVersion) bool {
	is := func(d operatorsv1alpha1.CRDDescription) bool { return d.Name == name }
	return slices.ContainsFunc(present, func(v operatorsv1alpha1.ClusterServiceVersion) bool {
		return v.Namespace == namespace && slices.ContainsFunc(v.Spec.CustomResourceDefinitions.Owned, is)
	})
}

// knownRules are what the operators of the namespace ask for in the whole cluster
// already.
func knownRules(namespace string, present []operatorsv1alpha1.ClusterServiceVersion) map[string]bool {
	known := map[string]bool{}
	for i := range present {
		if present[i].Namespace != namespace {
			continue
		}
		for _, p := range present[i].Spec.InstallStrategy.StrategySpec.ClusterPermissions {
			for j := range p.Rules {
				known[Rule(&p.Rules[j])] = true
			}
		}
	}
	return known
}

// Rule writes a rule in a line: what may be done, and to what.
func Rule(r *rbacv1.PolicyRule) string {
	verbs := strings.Join(sorted(r.Verbs), ",")
	if len(r.NonResourceURLs) > 0 {
		return verbs + " of " + strings.Join(sorted(r.NonResourceURLs), ", ")
	}
	var things []string
	for _, group := range sorted(r.APIGroups) {
		for _, resource := range sorted(r.Resources) {
			if group != "" {
				name, sub, _ := strings.Cut(resource, "/")
				resource = strings.TrimSuffix(name+"."+group+"/"+sub, "/")
			}
			things = append(things, resource)
		}
	}
	text := verbs + " " + strings.Join(things, ", ")
	if len(r.ResourceNames) > 0 {
		text += " named " + strings.Join(sorted(r.ResourceNames), ", ")
	}
	return text
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }
