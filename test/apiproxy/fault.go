package apiproxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cut says when the connection of a call is cut.
type Cut int

// The moments of a cut. Of a call that was cut a client cannot tell whether it has been
// carried out.
const (
	// NotCut lets the client have the answer.
	NotCut Cut = iota
	// CutBefore cuts before the server has seen the call.
	CutBefore
	// CutAfter cuts when the server has carried out the call, before the client has the
	// answer.
	CutAfter
)

// Fault is what is done to a call. The zero Fault is none.
type Fault struct {
	// Code is the HTTP status that the client gets instead of an answer of the server,
	// which does not see the call; 0 for none.
	Code int
	// RetryAfter is sent with Code.
	RetryAfter time.Duration
	// Delay is how long the call is held before anything else.
	Delay time.Duration
	// Cut is when the connection is cut.
	Cut Cut
}

// String names the fault.
func (f Fault) String() string {
	switch {
	case f.Code != 0:
		return "error " + strconv.Itoa(f.Code)
	case f.Cut == CutBefore:
		return "cut before"
	case f.Cut == CutAfter:
		return "cut after"
	case f.Delay > 0:
		return "delay of " + f.Delay.String()
	default:
		return "none"
	}
}

// Rule decides what is done to a call. It is called by many goroutines at once.
type Rule func(Call) Fault

// reasons are those of the codes that have one of their own.
var reasons = map[int]metav1.StatusReason{
	http.StatusUnauthorized:        metav1.StatusReasonUnauthorized,
	http.StatusForbidden:           metav1.StatusReasonForbidden,
	http.StatusConflict:            metav1.StatusReasonConflict,
	http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout:      metav1.StatusReasonTimeout,
}

// refuse answers a call with an error as the API server would word it.
func refuse(w http.ResponseWriter, c Call, f Fault) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(f.Code), Reason: reasons[f.Code],
		Message: fmt.Sprintf("the proxy answers %s with %d", c, f.Code),
		Details: &metav1.StatusDetails{Group: c.Group, Kind: c.Resource, Name: c.Name},
	}
	if f.RetryAfter > 0 {
		seconds := int32(f.RetryAfter.Round(time.Second).Seconds())
		status.Details.RetryAfterSeconds = seconds
		w.Header().Set("Retry-After", strconv.Itoa(int(seconds)))
	}
	text, err := json.Marshal(status)
	if err != nil {
		// It is made of strings and numbers.
		abort()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Code)
	// A client that went away does not hear it.
	_, _ = w.Write(text)
}
