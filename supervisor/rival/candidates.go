package rival

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxCandidates is how many Deployments of one namespace may be those of a lifecycle
	// manager: the oldest. OLM has two. What is younger is only counted, so that a user who
	// makes thousands of them causes no more reviews than one who makes eight.
	maxCandidates = 8
	// maxSuspects is how many suspects are named.
	maxSuspects = 20
)

// Judgement is whether a Deployment that looks like that of a lifecycle manager is one.
type Judgement int

const (
	// Competes is the judgement of a Deployment whose service account may do the work, or
	// which is in a namespace that the administrator named.
	Competes Judgement = iota
	// Suspect is the judgement of one that only looks like a lifecycle manager.
	Suspect
	// NotReviewed is the judgement of one whose service account has not been reviewed.
	NotReviewed
)

// candidate is a Deployment that looks like that of a lifecycle manager.
type candidate struct {
	Workload

	created time.Time
}

// candidates are the oldest of each namespace.
type candidates struct {
	byNamespace map[string][]candidate
	// omitted counts those that are active and beyond maxCandidates of their namespace.
	omitted int
}

// add keeps a Deployment if it looks like that of a lifecycle manager and is one of the
// oldest of its namespace that do.
func (c *candidates) add(d *appsv1.Deployment) {
	w := recognise(d)
	if w == nil {
		return
	}
	if c.byNamespace == nil {
		c.byNamespace = map[string][]candidate{}
	}
	one := candidate{*w, d.CreationTimestamp.Time}
	kept := c.byNamespace[w.Namespace]
	at, _ := slices.BinarySearchFunc(kept, one, byAge)
	kept = slices.Insert(kept, at, one)
	if len(kept) > maxCandidates {
		if kept[maxCandidates].State() == Running {
			c.omitted++
		}
		kept = kept[:maxCandidates]
	}
	c.byNamespace[w.Namespace] = kept
}

func byAge(a, b candidate) int {
	return cmp.Or(a.created.Compare(b.created), strings.Compare(a.Name, b.Name))
}

// workloads returns the candidates, and the service accounts of those that are not in one
// of the trusted namespaces.
func (c *candidates) workloads(trusted []string) ([]Workload, []types.NamespacedName) {
	var (
		all      []Workload
		accounts []types.NamespacedName
	)
	for _, namespace := range slices.Sorted(maps.Keys(c.byNamespace)) {
		for _, one := range c.byNamespace[namespace] {
			all = append(all, one.Workload)
			if !slices.Contains(trusted, namespace) {
				accounts = append(accounts, one.Account())
			}
		}
	}
	return all, accounts
}
