package discovery

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// evidence is what one object shows about the operator of a kind.
type evidence struct {
	state    OperatorState
	operator Operator
}

// severity orders the states of an operator: failures before successes, and known states before unknown ones. A
// missing operator matters only if no other object shows one.
var severity = []OperatorState{LeaseStale, OperatorDown, OperatorRunning, OperatorUnknown, OperatorMissing}

// combine combines all the evidence. It takes a version that one object shows with a name that another one shows.
func combine(all []evidence) evidence {
	if len(all) == 0 {
		return evidence{state: OperatorUnknown}
	}
	verdict := slices.MinFunc(all, func(a, b evidence) int {
		return slices.Index(severity, a.state) - slices.Index(severity, b.state)
	})
	for _, e := range all {
		if verdict.operator.Version == "" {
			verdict.operator.Version = e.operator.Version
		}
	}
	if verdict.state == OperatorMissing {
		verdict.operator.Detail = joined(all)
	}
	return verdict
}

func joined(all []evidence) string {
	var details []string
	for _, e := range all {
		details = append(details, e.operator.Detail)
	}
	return strings.Join(details, ", ")
}

// fromDeployments returns the evidence of the Deployments of an operator. One available Deployment suffices,
// since others may be of an older or a newer version.
func fromDeployments(found []appsv1.Deployment) evidence {
	last := evidence{state: OperatorMissing}
	for i := range found {
		d := &found[i]
		if last = fromDeployment(d); last.state == OperatorRunning {
			break
		}
	}
	return last
}

func fromDeployment(d *appsv1.Deployment) evidence {
	state, detail := OperatorRunning, ""
	if d.Status.AvailableReplicas == 0 {
		state, detail = OperatorDown, fmt.Sprintf("0 of %d pods are available", replicas(d))
	}
	return evidence{state, Operator{
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

// fromLease returns the evidence of a Lease and its holder.
func fromLease(lease *coordinationv1.Lease, now time.Time) evidence {
	name := fmt.Sprintf("Lease %s/%s", lease.Namespace, lease.Name)
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return evidence{LeaseStale, Operator{Name: name, Detail: "it has no holder"}}
	}
	holder := Operator{Name: fmt.Sprintf("%s (holder %s)", name, *lease.Spec.HolderIdentity)}
	if lease.Spec.RenewTime == nil {
		holder.Detail = "it was never renewed"
		return evidence{LeaseStale, holder}
	}
	var duration time.Duration
	if lease.Spec.LeaseDurationSeconds != nil {
		duration = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
	}
	if age := now.Sub(lease.Spec.RenewTime.Time); age > duration+leaseMargin {
		holder.Detail = fmt.Sprintf("it was renewed %s ago and is valid for %s", age.Round(time.Second), duration)
		return evidence{LeaseStale, holder}
	}
	return evidence{OperatorRunning, holder}
}

// owner holds the fields of a ClusterServiceVersion that are read.
type owner struct {
	namespace, name, version, phase, message string
}

// fromOwners returns the evidence of the ClusterServiceVersions that own a kind. One that succeeded suffices,
// since another may be about to replace it.
func fromOwners(owners []owner) evidence {
	i := slices.IndexFunc(owners, func(o owner) bool { return o.phase == "Succeeded" })
	if i >= 0 {
		return evidence{OperatorRunning, owners[i].operator("")}
	}
	detail := "its phase is " + owners[0].phase
	if owners[0].phase == "" {
		detail = "it has no phase, so no lifecycle manager handles it"
	}
	if owners[0].message != "" {
		detail += ": " + owners[0].message
	}
	return evidence{OperatorDown, owners[0].operator(detail)}
}

func (o owner) operator(detail string) Operator {
	return Operator{Name: "ClusterServiceVersion " + o.namespace + "/" + o.name, Version: o.version, Detail: detail}
}
