package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/buildcache"
)

// page is the document that names the differences.
const page = "docs/migration.md"

// exception is a difference that the document names.
type exception struct {
	// text is a part of the document.
	text string
	// matches reports whether the text names a difference.
	matches func(d *difference) bool
}

// isLate reports whether an object belongs to an operator whose InstallPlan was under way at a switch. Roles of the
// cluster that aggregate others have the rules of its roles.
func isLate(d *difference) bool {
	return slices.ContainsFunc([]string{d.namespace, d.owner, d.name}, func(s string) bool { return strings.HasPrefix(s, "late") }) ||
		strings.Contains(d.name, ".late") ||
		d.kind == "ClusterRole" && d.field == "rules" && strings.Contains(d.after, ".late")
}

// unpacked matches the names of the objects that OLM creates for the image of a bundle.
var unpacked = regexp.MustCompile("^[0-9a-f]{50,}(-?[0-9a-z]{5})?$")

// isUnpacked reports whether an object of the image of a bundle is new, or is a Job that has ended, or its pod.
func isUnpacked(d *difference) bool {
	isJob := slices.Contains([]string{"Job", "Pod"}, d.kind)
	return d.namespace == "olm" && (d.before == absent || isJob && d.after == absent) && d.field == "" && unpacked.MatchString(d.name)
}

// isOLM reports whether an object is one of OLM's Deployments that are scaled, or belongs to one.
func isOLM(d *difference) bool {
	if d.namespace != "olm" || !slices.Contains([]string{"Deployment", "ReplicaSet", "Pod", "PodMetrics"}, d.kind) {
		return false
	}
	for name := range olmPrograms {
		if d.name == name || strings.HasPrefix(d.name, name+"-") {
			return true
		}
	}
	return false
}

// isHosted reports whether an object belongs to the pods of the catalog.
func isHosted(d *difference) bool {
	return d.namespace == "olm" && strings.HasPrefix(d.name, catalogName) && d.kind != "NetworkPolicy"
}

// isMarked reports whether an object has got a label or an annotation of the supervisors.
func isMarked(d *difference) bool {
	return (strings.HasPrefix(d.field, "metadata.labels") || strings.HasPrefix(d.field, "metadata.annotations")) &&
		strings.Contains(d.field+d.after, api.Prefix)
}

// has returns a check for a kind and the beginning of a field.
func has(kind, field string) func(*difference) bool {
	return func(d *difference) bool {
		return d.kind == kind && (d.field == field || strings.HasPrefix(d.field, field+"."))
	}
}

// inStatus returns a check for the status of a kind.
func inStatus(kind string) func(*difference) bool { return has(kind, "status") }

func anyOf(all ...func(*difference) bool) func(*difference) bool {
	return func(d *difference) bool {
		return slices.ContainsFunc(all, func(one func(*difference) bool) bool { return one(d) })
	}
}

// ofManual reports whether a difference is the replaced InstallPlan of the operator whose update waits.
func ofManual(d *difference) bool {
	return d.namespace == "manual" && (d.kind == "InstallPlan" && d.field == "" || d.kind == "Subscription" &&
		slices.ContainsFunc([]string{"status.installplan", "status.installPlanRef", "status.installPlanGeneration"}, func(field string) bool {
			return has("Subscription", field)(d)
		}))
}

// isWebhook reports whether a webhook configuration is written differently.
func isWebhook(d *difference) bool {
	return slices.Contains([]string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}, d.kind) &&
		slices.Contains([]string{"metadata.generateName", "metadata.generation", "webhooks"}, d.field)
}

// isPolicyOfCatalog reports whether the NetworkPolicy of the catalog has another owner reference.
func isPolicyOfCatalog(d *difference) bool {
	return d.kind == "NetworkPolicy" && d.namespace == "olm" && strings.HasPrefix(d.name, catalogName) &&
		slices.Contains([]string{"metadata.generation", "metadata.ownerReferences"}, d.field)
}

// isMissingCopy reports whether a Role, ClusterRole or binding of a version is new.
func isMissingCopy(d *difference) bool {
	return slices.Contains([]string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}, d.kind) && d.field == "" && d.after == present && d.owner != ""
}

// isOfPackages reports whether the APIService of PackageManifests differs.
func isOfPackages(d *difference) bool {
	return d.kind == "APIService" && d.name == "v1.packages.operators.coreos.com"
}

// atTakeover returns the differences that the document names between OLM and the supervisors.
func atTakeover() []exception {
	return []exception{
		{"scaled to 0 and labelled", isOLM},
		{"InstallPlans in progress that refer to an unpacked bundle", isLate},
		{"ConfigMaps, Jobs and roles of unpacked bundles", isUnpacked},
		{"They wait until OLM has stopped.", func(d *difference) bool { return d.namespace == home || d.name == home }},
		{"run as a Deployment behind the same Service", isHosted},
		{"requirements, health, conditions and times are written again", anyOf(
			has("ClusterServiceVersion", "status.requirementStatus"), has("ClusterServiceVersion", "status.certsLastUpdated"),
			has("ClusterServiceVersion", "status.certsRotateAt"), has("ClusterServiceVersion", "status.lastUpdateTime"),
			has("Subscription", "status.catalogHealth"), has("Subscription", "status.conditions"),
			has("Subscription", "status.lastUpdated"), has("Subscription", "status.installPlanGeneration"))},
		{"get labels `olm.api.…`", func(d *difference) bool {
			return d.kind == "ClusterServiceVersion" && strings.HasPrefix(d.field, "metadata.labels."+api.PrefixAPI)
		}},
		{"the status lists components and namespaces in another order", anyOf(
			inStatus("Operator"), inStatus("OperatorGroup"))},
		{"an owner reference without `controller: true`, the label `olm.managed`, and namespaces of accounts", func(d *difference) bool {
			return has("OperatorCondition", "metadata.labels")(d) || has("RoleBinding", "subjects")(d) ||
				slices.Contains([]string{"OperatorCondition", "Role", "RoleBinding"}, d.kind) && d.field == "metadata.ownerReferences"
		}},
		{"have the labels `olm.owner` of their version", func(d *difference) bool {
			return slices.Contains([]string{"Secret", "Service", "Role", "RoleBinding"}, d.kind) && strings.HasPrefix(d.field, "metadata.labels.olm.owner")
		}},
		{"ports of Services are sorted", has("Service", "spec.ports")},
		{"without `generateName`, with the fields that supervisors set", isWebhook},
		{"the CatalogSource controls them", isPolicyOfCatalog},
		{"do not contain the APIs of failed versions", has("ClusterRole", "aggregationRule")},
		{"also created where OLM leaves them out", isMissingCopy},
		{"but lose the labels that OLM removes when a newer plan appears", has("InstallPlan", "metadata.labels")},
		{"replaced by plans with the same content and another name", ofManual},
		{"recreated with the operator's namespace in their names", func(d *difference) bool {
			return d.field == "" && (strings.Contains(d.name, "-system:auth-delegator") || strings.Contains(d.name, "-auth-reader"))
		}},
		{"NetworkPolicies `…-unpack-bundles`", func(d *difference) bool {
			return d.kind == "NetworkPolicy" && d.field == "" && strings.HasSuffix(d.name, "-unpack-bundles")
		}},
		{"supervisors serve [PackageManifests](operations.md#packagemanifests) in its place", isOfPackages},
		{"get labels and annotations `chandlery.dev/…`", isMarked},
		{"without `olm.permissions.hash`", anyOf(
			has("ClusterRole", "metadata.labels.olm.permissions.hash"), has("ClusterRoleBinding", "metadata.labels.olm.permissions.hash"))},
		{"the kind in owner references is `CustomResourceDefinition`", has("ClusterRole", "metadata.ownerReferences")},
		{"may also write `operatorconditions/status`", func(d *difference) bool { return d.kind == "Role" && d.field == "rules" }},
	}
}

// atHandback returns the differences that the document names between OLM before the takeover and after the handback.
func atHandback() []exception {
	return []exception{
		{"scaled to 0 and labelled", isOLM},
		{"Operators stay at their present version.", isLate},
		{"ConfigMaps, Jobs and roles of unpacked bundles", isUnpacked},
		{"The Deployment of the supervisors has 0 replicas.", func(d *difference) bool { return d.namespace == home || d.name == home }},
		{"Recreated objects have a new UID and time.", func(d *difference) bool {
			return slices.Contains([]string{"metadata.uid", "metadata.creationTimestamp", "metadata.generation"}, d.field) &&
				slices.Contains([]string{"ClusterRoleBinding", "RoleBinding", "NetworkPolicy"}, d.kind) || d.kind == "Pod" && isHosted(d)
		}},
		{"Restored objects have another generation.", func(d *difference) bool { return isWebhook(d) && d.field == "metadata.generation" }},
		{"Copied Roles, ClusterRoles and bindings that OLM had left out stay.", isMissingCopy},
		{"InstallPlans that waited or were in progress, and labels of old ones, are not restored.", anyOf(ofManual, has("InstallPlan", "metadata.labels"))},
		{"ClusterRoles of kinds keep the reference to their `CustomResourceDefinition`.", has("ClusterRole", "metadata.ownerReferences")},
		{"The status that supervisors wrote stays", anyOf(
			inStatus("Subscription"), inStatus("ClusterServiceVersion"), inStatus("CatalogSource"), inStatus("Operator"), inStatus("OperatorGroup"))},
	}
}

// document checks that the page has the texts of all exceptions.
func document() error {
	root, err := buildcache.SourceDir(".")
	if err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		return fmt.Errorf("reading the document: %w", err)
	}
	words := strings.Join(strings.Fields(string(content)), " ")
	for _, e := range append(atTakeover(), atHandback()...) {
		if !strings.Contains(words, e.text) {
			return fmt.Errorf("%s does not contain %q, which names differences of a rehearsal", page, e.text)
		}
	}
	return nil
}

// judge counts the differences of each exception by its text, and returns those that none names.
func judge(all []difference, exceptions []exception) (named map[string]int, unnamed []difference) {
	named = map[string]int{}
	for i := range all {
		j := slices.IndexFunc(exceptions, func(e exception) bool { return e.matches(&all[i]) })
		if j < 0 {
			unnamed = append(unnamed, all[i])
			continue
		}
		named[exceptions[j].text]++
	}
	return named, unnamed
}
