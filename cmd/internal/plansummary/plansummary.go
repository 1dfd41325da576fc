// Package plansummary summarizes what an InstallPlan would change, for users who decide whether to
// approve it. Its functions are pure and use only what the InstallPlan holds.
package plansummary

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// Summary is what an InstallPlan would change.
type Summary struct {
	Namespace   string `json:"namespace"`
	InstallPlan string `json:"installPlan"`
	// Phase is the phase of the InstallPlan. Approved reports whether it is approved.
	Phase    string `json:"phase"`
	Approved bool   `json:"approved"`
	// Subscriptions are the Subscriptions that the InstallPlan serves.
	Subscriptions []string  `json:"subscriptions,omitempty"`
	Versions      []Version `json:"versions"`
	// Definitions are the CustomResourceDefinitions that the InstallPlan applies.
	Definitions []Definition `json:"definitions,omitempty"`
	// ClusterRules are cluster-wide permissions that operators gain, one in each line. Permissions
	// that installed operators are known to have are not among them.
	ClusterRules []string `json:"clusterRules,omitempty"`
	// Objects is the number of objects that the InstallPlan applies.
	Objects int `json:"objects"`
	// Unread is the number of objects that the InstallPlan only references because they are too large.
	Unread int `json:"unread,omitempty"`
}

// Version is a version to be installed.
type Version struct {
	// Name is the name of the ClusterServiceVersion.
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Replaces is the ClusterServiceVersion that is replaced, if any. From is its version.
	Replaces string `json:"replaces,omitempty"`
	From     string `json:"from,omitempty"`
}

// Definition is a CustomResourceDefinition.
type Definition struct {
	Name string `json:"name"`
	// New is set if no operator of the namespace provides the definition yet.
	New bool `json:"new"`
}

// Of returns what an InstallPlan would change, given the present ClusterServiceVersions.
func Of(p *operatorsv1alpha1.InstallPlan, present []operatorsv1alpha1.ClusterServiceVersion) Summary {
	s := Summary{
		Namespace: p.Namespace, InstallPlan: p.Name, Phase: string(p.Status.Phase), Approved: p.Spec.Approved,
		Subscriptions: Subscriptions(p), Objects: len(p.Status.Plan),
	}
	for _, name := range p.Spec.ClusterServiceVersionNames {
		s.Versions = append(s.Versions, versionOf(p, name, present))
	}
	known := knownRules(p.Namespace, present)
	for _, step := range p.Status.Plan {
		if step != nil {
			s.step(step, present, known)
		}
	}
	slices.Sort(s.ClusterRules)
	s.ClusterRules = slices.Compact(s.ClusterRules)
	return s
}

// step adds the changes of one step.
func (s *Summary) step(step *operatorsv1alpha1.Step, present []operatorsv1alpha1.ClusterServiceVersion, known map[string]bool) {
	u, ref, err := plansteps.Manifest(step)
	if ref != nil || err != nil {
		s.Unread++
	}
	switch step.Resource.Kind {
	case "CustomResourceDefinition":
		s.Definitions = append(s.Definitions, Definition{Name: step.Resource.Name, New: !provided(s.Namespace, step.Resource.Name, present)})
	case "ClusterRole":
		if u == nil {
			return
		}
		var role rbacv1.ClusterRole
		if text, err := json.Marshal(u.Object); err != nil || json.Unmarshal(text, &role) != nil {
			s.Unread++
			return
		}
		for i := range role.Rules {
			if rule := Rule(&role.Rules[i]); !known[rule] {
				s.ClusterRules = append(s.ClusterRules, rule)
			}
		}
	}
}

// Subscriptions returns the Subscriptions that an InstallPlan serves, from its metadata.
func Subscriptions(p *operatorsv1alpha1.InstallPlan) []string {
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

// VersionIn returns the version of a ClusterServiceVersion in an InstallPlan; empty if the InstallPlan lacks it.
func VersionIn(p *operatorsv1alpha1.InstallPlan, name string) string {
	return versionInPlan(p, name).Spec.Version
}

// csv holds the fields used of a ClusterServiceVersion in an InstallPlan.
type csv struct {
	Spec struct {
		Version  string `json:"version"`
		Replaces string `json:"replaces"`
	} `json:"spec"`
}

func versionInPlan(p *operatorsv1alpha1.InstallPlan, name string) csv {
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
	manifest := versionInPlan(p, name)
	v := Version{Name: name, Version: cmp.Or(manifest.Spec.Version, Suffix(name)), Replaces: manifest.Spec.Replaces}
	for i := range present {
		if present[i].Name == v.Replaces && present[i].Namespace == p.Namespace {
			v.From = cmp.Or(Declared(&present[i]), Suffix(v.Replaces))
			return v
		}
	}
	// An InstallPlan that was recreated after a version was removed replaces nothing.
	v.Replaces = ""
	return v
}

// Declared returns the version that a ClusterServiceVersion declares; empty if it declares none.
func Declared(v *operatorsv1alpha1.ClusterServiceVersion) string {
	if text := v.Spec.Version.String(); text != "0.0.0" {
		return text
	}
	return ""
}

// Suffix returns the version in the name of a ClusterServiceVersion, by the convention NAME.vVERSION.
func Suffix(name string) string {
	if _, after, found := strings.Cut(name, "."); found {
		return strings.TrimPrefix(after, "v")
	}
	return name
}

// provided reports whether a ClusterServiceVersion of the namespace provides a definition.
func provided(namespace, name string, present []operatorsv1alpha1.ClusterServiceVersion) bool {
	is := func(d operatorsv1alpha1.CRDDescription) bool { return d.Name == name }
	return slices.ContainsFunc(present, func(v operatorsv1alpha1.ClusterServiceVersion) bool {
		return v.Namespace == namespace && slices.ContainsFunc(v.Spec.CustomResourceDefinitions.Owned, is)
	})
}

// knownRules returns the cluster-wide permissions that operators of the namespace already request.
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

// Rule returns a rule as one line: the verbs and the resources.
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
