package explain

import (
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/rival"
)

// leaseSlack is how much later than a Lease says it is taken for run out: the clocks of
// two machines differ.
const leaseSlack = 10 * time.Second

// leases are what supervisors hold while they lead.
const leases = "leases.coordination.k8s.io"

// hidesLeases says whether it could not be seen if a supervisor leads.
func (s *story) hidesLeases() bool {
	return slices.ContainsFunc(*s.unseen, func(u Unseen) bool { return u.Resource == leases })
}

// supervisor looks whether there is one that leads: without it nothing goes on, and
// whatever statuses say may be old. Where its Lease is hidden, statuses are believed of
// what has come to rest: an object that nobody looked at is found by itself.
func (s *story) supervisor() []*Finding {
	if len(s.Leases) == 0 {
		if s.missConfirmation(leases, "") {
			return nil
		}
		const missing = "Lease " + api.LeaseName
		f := s.found(CodeSupervisorNotRunning, Wrong, "no supervisor runs: there is no "+missing+" in this cluster, so that nothing goes on in it")
		f.Object = Ref{Kind: KindLease, Name: api.LeaseName}
		return []*Finding{f.advising("Install or start the supervisor.").with("kubectl get deployments,pods --all-namespaces -l " + ofSupervisor().String())}
	}
	var last *coordinationv1.Lease
	for i := range s.Leases {
		if l := &s.Leases[i]; leads(l, s.Taken) {
			return nil
		} else if last == nil || renewed(l).After(renewed(last)) {
			last = l
		}
	}
	return []*Finding{s.to(refTo(KindLease, last), "", "").leaderless(last)}
}

// leaderless is for a Lease that nobody holds any more.
func (s *story) leaderless(lease *coordinationv1.Lease) *Finding {
	cause := fmt.Sprintf("no supervisor runs: Lease %s/%s ", lease.Namespace, lease.Name)
	holder := s.holder(lease)
	if holder.identity == "" {
		cause += "was given up"
	} else {
		cause += "is held by " + holder.identity + holder.what + ", which last renewed it"
	}
	if at := renewed(lease); !at.IsZero() {
		cause += " at " + at.UTC().Format(timeFormat)
	}
	if holder.trouble != "" {
		cause += "; " + holder.trouble
	}
	return s.found(CodeSupervisorNotRunning, Wrong, cause+"; what statuses say is as old").
		advising(holder.remedy).with(holder.commands...).with(kubectl("get", s.at(), "-o yaml"))
}

// leads says whether whoever holds a Lease still does at a time.
func leads(l *coordinationv1.Lease, now time.Time) bool {
	if holderOf(l) == "" || l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return false
	}
	lasts := min(time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second, rival.MaxLeaseDuration)
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
