package competing

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
	// maxCandidates is the maximum number of Deployments of one namespace that are considered: the oldest. OLM has
	// two. Younger ones are only counted. A user who creates thousands of them thus causes no more reviews than one
	// who creates eight.
	maxCandidates = 8
	// maxSuspects is the maximum number of suspects that are named.
	maxSuspects = 20
)

// Verdict is whether a Deployment that looks like a lifecycle manager is one.
type Verdict int

const (
	// Competes means that its service account may do the work, or that the administrator named its namespace.
	Competes Verdict = iota
	// Suspect means that it only looks like a lifecycle manager.
	Suspect
	// NotReviewed means that its service account has not been reviewed.
	NotReviewed
)

// candidate is a Deployment that looks like a lifecycle manager.
type candidate struct {
	Workload

	created time.Time
}

// candidates are the oldest candidates of each namespace.
type candidates struct {
	byNamespace map[string][]candidate
	// omitted is the number of active Deployments beyond maxCandidates of their namespace.
	omitted int
}

// add adds a Deployment if it looks like a lifecycle manager and is among the oldest such Deployments of its
// namespace.
func (c *candidates) add(d *appsv1.Deployment) {
	w := recognize(d)
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

// workloads returns the candidates, and the service accounts of those outside the trusted namespaces.
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
