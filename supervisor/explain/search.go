package explain

import (
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// search finds the causes of one object's problems. It follows references from object to object, and records the
// path and the objects that it could not read. The files of this package have a function for each kind of object.
type search struct {
	*ClusterState

	subject Ref
	// sub is the Subscription of the question; nil if the question is about another object.
	sub *operatorsv1alpha1.Subscription
	// path leads from the subject to the current object.
	path []Link
	// visited holds the versions of the path, so that a cycle ends.
	visited map[Ref]bool
	// unreadable is shared by all searches of one question.
	unreadable *[]Unreadable
}

// newSearch returns the search for the causes of an object.
func newSearch(o *ClusterState, subject Ref) *search {
	return &search{ClusterState: o, subject: subject, visited: map[Ref]bool{}, unreadable: &[]Unreadable{}}
}

// follow returns the search at the next object. state and message describe that object.
func (s *search) follow(object Ref, state, message string) *search {
	next := *s
	next.path = append(slices.Clip(slices.Clone(s.path)), Link{Object: object, State: state, Message: oneLine(message)})
	return &next
}

// current returns the current object.
func (s *search) current() Ref {
	if len(s.path) == 0 {
		return s.subject
	}
	return s.path[len(s.path)-1].Object
}

// finding returns a finding about the current object.
func (s *search) finding(code string, severity Severity, cause string) *Finding {
	return &Finding{
		Code: code, Object: s.current(), Severity: severity, Cause: oneLine(cause), Chain: slices.Clone(s.path), Remedy: remedyOf(code),
	}
}

// withRemedy replaces the general remedy by one that fits the case; empty keeps it.
func (f *Finding) withRemedy(remedy string) *Finding {
	if remedy != "" {
		f.Remedy = sentence(remedy)
	}
	return f
}

// withCommands adds commands.
func (f *Finding) withCommands(commands ...string) *Finding {
	f.Commands = append(f.Commands, commands...)
	return f
}

// needs records that objects of a resource are needed, if they are hidden. It reports whether they are.
func (s *search) needs(resource, namespace string) bool {
	return s.noteHidden(resource, namespace, false)
}

// needsToConfirm does the same as needs for objects that would only confirm others.
func (s *search) needsToConfirm(resource, namespace string) bool {
	return s.noteHidden(resource, namespace, true)
}

func (s *search) noteHidden(resource, namespace string, minor bool) bool {
	hidden := false
	for _, u := range s.Unreadable {
		if !u.covers(resource, namespace) {
			continue
		}
		hidden = true
		if u.Namespace == "" {
			u.Namespace = namespace
		}
		// A temporary failure can be retried, while a missing permission remains.
		u.Minor = minor && u.Reason == UnreadableForbidden
		same := func(known Unreadable) bool { return known.Resource == u.Resource && known.Namespace == u.Namespace }
		if i := slices.IndexFunc(*s.unreadable, same); i < 0 {
			*s.unreadable = append(*s.unreadable, u)
		} else {
			(*s.unreadable)[i].Minor = (*s.unreadable)[i].Minor && u.Minor
		}
	}
	return hidden
}

// find returns the object of a list with the namespace and name of a reference; nil if there is none.
func find[T any, P interface {
	*T
	metav1.Object
}](list []T, ref Ref,
) P {
	for i := range list {
		if p := P(&list[i]); p.GetNamespace() == ref.Namespace && p.GetName() == ref.Name {
			return p
		}
	}
	return nil
}

func (s *search) catalog(ref Ref) *operatorsv1alpha1.CatalogSource {
	source := find(s.CatalogSources, ref)
	if source == nil {
		s.noteHidden("catalogsources.operators.coreos.com", ref.Namespace, reportsHealthy(s.sub, ref))
	}
	return source
}

// reportsHealthy reports whether a Subscription states that a catalog is healthy; false for none.
func reportsHealthy(sub *operatorsv1alpha1.Subscription, catalog Ref) bool {
	return sub != nil && slices.ContainsFunc(sub.Status.CatalogHealth, func(h operatorsv1alpha1.SubscriptionCatalogHealth) bool {
		of := h.CatalogSourceRef
		return h.Healthy && of != nil && of.Namespace == catalog.Namespace && of.Name == catalog.Name
	})
}

func (s *search) plan(namespace, name string) *operatorsv1alpha1.InstallPlan {
	p := find(s.InstallPlans, Ref{Namespace: namespace, Name: name})
	if p == nil && name != "" {
		s.needs("installplans.operators.coreos.com", namespace)
	}
	return p
}

func (s *search) version(namespace, name string) *operatorsv1alpha1.ClusterServiceVersion {
	csv := find(s.Versions, Ref{Namespace: namespace, Name: name})
	if csv == nil && name != "" {
		s.needs("clusterserviceversions.operators.coreos.com", namespace)
	}
	return csv
}

// groups returns the OperatorGroups of a namespace; false if they are hidden.
func (s *search) groups(namespace string) ([]*operatorsv1.OperatorGroup, bool) {
	var found []*operatorsv1.OperatorGroup
	for i := range s.OperatorGroups {
		if s.OperatorGroups[i].Namespace == namespace {
			found = append(found, &s.OperatorGroups[i])
		}
	}
	return found, !s.needs("operatorgroups.operators.coreos.com", namespace)
}

func (s *search) deployment(namespace, name string) *appsv1.Deployment {
	d := find(s.Deployments, Ref{Namespace: namespace, Name: name})
	if d == nil {
		s.needs("deployments.apps", namespace)
	}
	return d
}

// pods returns the pods of a namespace that a selector selects, the oldest first.
func (s *search) pods(namespace string, selector labels.Selector) []*corev1.Pod {
	s.needs("pods", namespace)
	var found []*corev1.Pod
	for i := range s.Pods {
		if pod := &s.Pods[i]; pod.Namespace == namespace && selector.Matches(labels.Set(pod.Labels)) {
			found = append(found, pod)
		}
	}
	slices.SortFunc(found, func(a, b *corev1.Pod) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return found
}

// warning returns the newest warning about an object with one of some reasons; empty for none.
func (s *search) warning(object Ref, reasons ...string) string {
	var newest *corev1.Event
	for i := range s.Events {
		e := &s.Events[i]
		about := e.InvolvedObject
		if about.Kind != object.Kind || about.Namespace != object.Namespace || about.Name != object.Name || !slices.Contains(reasons, e.Reason) {
			continue
		}
		if newest == nil || lastSeen(e).After(lastSeen(newest).Time) {
			newest = e
		}
	}
	if newest == nil {
		s.needs("events", object.Namespace)
		return ""
	}
	return newest.Message
}

// lastSeen returns the time at which an Event was last seen.
func lastSeen(e *corev1.Event) metav1.Time {
	switch {
	case e.Series != nil:
		return metav1.Time(e.Series.LastObservedTime)
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.Time(e.EventTime)
	default:
		return e.CreationTimestamp
	}
}

// refTo returns a reference to an object.
func refTo(kind string, o metav1.Object) Ref {
	return Ref{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}
