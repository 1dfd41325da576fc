package explain

import (
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// leaseSlack is the tolerance before a Lease counts as expired, since the clocks of two machines differ.
const leaseSlack = 10 * time.Second

// leases is the resource of the Leases that leading supervisors hold.
const leases = "leases.coordination.k8s.io"

// hidesLeases reports whether the Leases of supervisors are hidden.
func hidesLeases(s *search) bool {
	return slices.ContainsFunc(*s.unreadable, func(u Unreadable) bool { return u.Resource == leases })
}

// supervisorFindings checks whether a supervisor leads. Without one, nothing happens, and statuses may be outdated. If
// its Lease is hidden, the statuses of idle objects are trusted. An object that no supervisor reconciled has a
// finding of its own.
func supervisorFindings(s *search) []*Finding {
	if len(s.Leases) == 0 {
		if s.needsToConfirm(leases, "") {
			return nil
		}
		const missing = "Lease " + api.LeaseName
		f := s.finding(CodeSupervisorNotRunning, Wrong, "no supervisor runs: there is no "+missing+" in this cluster")
		f.Object = Ref{Kind: KindLease, Name: api.LeaseName}
		return []*Finding{f.withRemedy("Install or start the supervisor.").
			withCommands("kubectl get deployments,pods --all-namespaces -l " + ofSupervisor().String())}
	}
	var last *coordinationv1.Lease
	for i := range s.Leases {
		if l := &s.Leases[i]; Leads(l, s.ReadAt) {
			return nil
		} else if last == nil || renewed(l).After(renewed(last)) {
			last = l
		}
	}
	return []*Finding{leaderlessFinding(s.follow(refTo(KindLease, last), "", ""), last)}
}

// leaderlessFinding returns the finding about a Lease without a current holder.
func leaderlessFinding(s *search, lease *coordinationv1.Lease) *Finding {
	cause := fmt.Sprintf("no supervisor runs: Lease %s/%s ", lease.Namespace, lease.Name)
	holder := describeHolder(s, lease)
	if holder.identity == "" {
		cause += "was released"
	} else {
		cause += "is held by " + holder.identity + holder.what + ", which last renewed it"
	}
	if at := renewed(lease); !at.IsZero() {
		cause += " at " + at.UTC().Format(timeFormat)
	}
	if holder.cause != "" {
		cause += "; " + holder.cause
	}
	return s.finding(CodeSupervisorNotRunning, Wrong, cause+"; statuses have not been updated since then").
		withRemedy(holder.remedy).withCommands(holder.commands...).withCommands(kubectl("get", s.current(), "-o yaml"))
}

// PackagesService is the name of the APIService of PackageManifests.
const PackagesService = "v1.packages.operators.coreos.com"

// packagesFindings checks whether the API of PackageManifests is available.
func packagesFindings(s *search) []*Finding {
	if s.PackagesProblem == "" {
		return nil
	}
	f := s.finding(CodePackageManifestsUnavailable, Wrong, "PackageManifests are unavailable: "+s.PackagesProblem)
	f.Object = Ref{Kind: KindAPIService, Name: PackagesService}
	return []*Finding{f.withCommands("kubectl get apiservice " + PackagesService + " -o yaml")}
}

// Leads reports whether the holder of a Lease still holds it at a time.
func Leads(l *coordinationv1.Lease, now time.Time) bool {
	if holderOf(l) == "" || l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return false
	}
	lasts := min(time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second, competing.MaxLeaseDuration)
	return now.Before(l.Spec.RenewTime.Add(lasts + leaseSlack))
}

func holderOf(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

func renewed(l *coordinationv1.Lease) time.Time {
	if l.Spec.RenewTime == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Time
}
