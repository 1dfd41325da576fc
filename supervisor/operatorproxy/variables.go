// Package operatorproxy has the proxies for the containers of operators, as environment variables. They come from a
// ConfigMap, or from OpenShift.
package operatorproxy

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// UnknownError is the error of proxies that could not be determined. A caller must not treat it as an empty result,
// which would remove proxies from operators.
type UnknownError struct{ Err error }

// Error returns the text of the cause.
func (e *UnknownError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnknownError) Unwrap() error { return e.Err }

// Variables are the environment variables. They are safe for concurrent use.
type Variables struct {
	changes chan event.GenericEvent

	mu    sync.Mutex
	known bool
	env   []corev1.EnvVar
	why   error
}

// NewVariables returns variables that are unknown for a reason.
func NewVariables(why error) *Variables {
	return &Variables{changes: make(chan event.GenericEvent, 1), why: &UnknownError{why}}
}

// Env returns the variables; none if there are no proxies. The error is an [*UnknownError].
func (v *Variables) Env() ([]corev1.EnvVar, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.known {
		return nil, v.why
	}
	return slices.Clone(v.env), nil
}

// Changes returns a channel with an event for each change of the variables.
func (v *Variables) Changes() <-chan event.GenericEvent { return v.changes }

// Set sets the variables.
func (v *Variables) Set(env []corev1.EnvVar) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known && slices.Equal(v.env, env) {
		return
	}
	v.known, v.env = true, env
	select {
	case v.changes <- event.GenericEvent{Object: &unstructured.Unstructured{}}:
	default: // An event is already pending.
	}
}

// SetError records why the variables cannot be determined. Known ones remain.
func (v *Variables) SetError(ctx context.Context, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.known && v.why.Error() != err.Error() {
		ctrl.LoggerFrom(ctx).Error(err, "Operators wait until their proxies are known")
	}
	v.why = &UnknownError{err}
}

// Of returns the variables for settings. Empty ones are omitted.
func Of(httpProxy, httpsProxy, noProxy string) []corev1.EnvVar {
	var env []corev1.EnvVar
	for _, v := range []corev1.EnvVar{
		{Name: "HTTP_PROXY", Value: httpProxy}, {Name: "HTTPS_PROXY", Value: httpsProxy}, {Name: "NO_PROXY", Value: noProxy},
	} {
		if v.Value != "" {
			env = append(env, v)
		}
	}
	return env
}
