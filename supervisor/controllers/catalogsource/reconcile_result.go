package catalogsource

import (
	"cmp"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

// reconcileResult is the result of running a catalog, or of one step of that.
type reconcileResult struct {
	// problem describes the error, and reason is its reason for the status.
	reason  operatorsv1alpha1.ConditionReason
	problem string
	// shownInProgressing is true if problem states what the condition Progressing states.
	shownInProgressing bool
	// ineffectiveSetting describes a setting without effect. It does not affect anything else.
	ineffectiveSetting string
	// conditions describe the running replicas, the rollout, and the settings for images.
	conditions []metav1.Condition
	// created is the creation time of the Service; zero if there is none.
	created metav1.Time
	// polled is when the registry was last queried; zero if it was not.
	polled time.Time
	// configMap is the ConfigMap of the catalog.
	configMap servedConfigMap
	// next is when to reconcile again; 0 for at the next change.
	next time.Duration
	// starting is true if no replica serves yet and no problem prevents it.
	starting bool
	// blocked is the reason of the condition Progressing if the wanted state cannot run, and empty otherwise. Running
	// replicas stay unchanged.
	blocked string
	// failed is true if a retry may solve the problem.
	failed bool
}

// servedConfigMap is the ConfigMap of a catalog.
type servedConfigMap struct {
	// reference is the reference for the status; nil if there is no ConfigMap.
	reference *operatorsv1alpha1.ConfigMapResourceReference
	// current is true if its newest version is valid. revision is the revision of the replicas that
	// serve this version; empty until all replicas serve it.
	current  bool
	revision string
	// newest is the revision of the replicas with this version, serving or not; empty if there are none.
	newest string
}

// serverProblem returns a result with a problem of the replicas or of the registry.
func serverProblem(err error) reconcileResult {
	return reconcileResult{reason: operatorsv1alpha1.CatalogSourceRegistryServerError, problem: olmtext.EnsureServerFailed(err)}
}

// serverFailure returns a result with a problem that a retry may solve; an empty result without error.
func serverFailure(err error) reconcileResult {
	if err == nil {
		return reconcileResult{}
	}
	h := serverProblem(err)
	h.failed = true
	return h
}

// merge returns the combined result of h and of a later step. The first problem counts.
func (h reconcileResult) merge(later reconcileResult) reconcileResult {
	if h.problem == "" {
		h.reason, h.problem, h.shownInProgressing = later.reason, later.problem, later.shownInProgressing
	}
	h.ineffectiveSetting = cmp.Or(h.ineffectiveSetting, later.ineffectiveSetting)
	h.conditions = append(h.conditions, later.conditions...)
	if h.created.IsZero() {
		h.created = later.created
	}
	if h.polled.IsZero() {
		h.polled = later.polled
	}
	h.configMap = cmp.Or(h.configMap, later.configMap)
	h.starting, h.blocked, h.failed = h.starting || later.starting, cmp.Or(h.blocked, later.blocked), h.failed || later.failed
	return h.requeueWithin(later.next)
}

// requeueWithin returns h with next limited to a time; 0 for no limit.
func (h reconcileResult) requeueWithin(limit time.Duration) reconcileResult {
	if limit > 0 && (h.next == 0 || limit < h.next) {
		h.next = limit
	}
	return h
}
