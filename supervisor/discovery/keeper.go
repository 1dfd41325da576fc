package discovery

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// evidence is what one object shows about who reconciles a kind.
type evidence struct {
	state  Upkeep
	keeper Upkeeper
}

// severity orders the states of upkeep: failures before successes, and known states before unknown ones. A
// missing operator matters only if no other object shows one.
var severity = []Upkeep{LeaseStale, KeeperDown, Kept, KeeperUnknown, KeeperMissing}

// judge combines all the evidence. It takes a version that one object shows with a name that another one shows.
func judge(all []evidence) evidence {
	if len(all) == 0 {
		return evidence{state: KeeperUnknown}
	}
	verdict := slices.MinFunc(all, func(a, b evidence) int {
		return slices.Index(severity, a.state) - slices.Index(severity, b.state)
	})
	for _, e := range all {
		if verdict.keeper.Version == "" {
			verdict.keeper.Version = e.keeper.Version
		}
	}
	if verdict.state == KeeperMissing {
		verdict.keeper.Detail = joined(all)
	}
	return verdict
}

func joined(all []evidence) string {
	var details []string
	for _, e := range all {
		details = append(details, e.keeper.Detail)
	}
	return strings.Join(details, ", ")
}

// ofDeployments returns the evidence of the Deployments of an operator. One available Deployment suffices,
// since others may be of an older or a newer version.
func ofDeployments(found []appsv1.Deployment) evidence {
	said := evidence{state: KeeperMissing}
	for i := range found {
		d := &found[i]
		if said = ofDeployment(d); said.state == Kept {
			break
		}
	}
	return said
}

func ofDeployment(d *appsv1.Deployment) evidence {
	state, detail := Kept, ""
	if d.Status.AvailableReplicas == 0 {
		state, detail = KeeperDown, fmt.Sprintf("0 of %d pods are available", replicas(d))
	}
	return evidence{state, Upkeeper{
		Name: "Deployment " + d.Namespace + "/" + d.Name, Version: d.Labels["app.kubernetes.io/version"], Detail: detail,
	}}
}

func replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

// leaseMargin is the tolerance before a Lease counts as stale: for the difference between clocks, and for the
// change of a leader.
const leaseMargin = time.Minute

// ofLease returns the evidence of a Lease and its holder.
func ofLease(lease *coordinationv1.Lease, now time.Time) evidence {
	name := fmt.Sprintf("Lease %s/%s", lease.Namespace, lease.Name)
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return evidence{LeaseStale, Upkeeper{Name: "whoever holds " + name, Detail: "its last holder gave it up, and nobody has taken it"}}
	}
	holder := Upkeeper{Name: fmt.Sprintf("the holder %s of %s", *lease.Spec.HolderIdentity, name)}
	if lease.Spec.RenewTime == nil {
		holder.Detail = "it has never been renewed"
		return evidence{LeaseStale, holder}
	}
	var duration time.Duration
	if lease.Spec.LeaseDurationSeconds != nil {
		duration = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
	}
	if age := now.Sub(lease.Spec.RenewTime.Time); age > duration+leaseMargin {
		holder.Detail = fmt.Sprintf("it was renewed %s ago, and is good for %s", age.Round(time.Second), duration)
		return evidence{LeaseStale, holder}
	}
	return evidence{Kept, holder}
}

// owner holds the fields of a ClusterServiceVersion that are read.
type owner struct {
	namespace, name, version, phase, message string
}

// ofOwners returns the evidence of the ClusterServiceVersions that own a kind. One that succeeded suffices,
// since another may be about to replace it.
func ofOwners(owners []owner) evidence {
	i := slices.IndexFunc(owners, func(o owner) bool { return o.phase == "Succeeded" })
	if i >= 0 {
		return evidence{Kept, owners[i].keeper("")}
	}
	detail := "its phase is " + owners[0].phase
	if owners[0].phase == "" {
		detail = "it has no phase: nobody installs it"
	}
	if owners[0].message != "" {
		detail += ": " + owners[0].message
	}
	return evidence{KeeperDown, owners[0].keeper(detail)}
}

func (o owner) keeper(detail string) Upkeeper {
	return Upkeeper{Name: "ClusterServiceVersion " + o.namespace + "/" + o.name, Version: o.version, Detail: detail}
}
