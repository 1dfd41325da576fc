package apiproxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cut is the moment at which the connection of a call is cut.
type Cut int

// The moments of a cut. The client of a call that was cut cannot know whether it was carried out.
const (
	// NotCut sends the answer to the client.
	NotCut Cut = iota
	// CutBefore cuts before the server has received the call.
	CutBefore
	// CutAfter cuts after the server has carried out the call and before the client gets the answer.
	CutAfter
)

// Fault is the failure that is injected into a call. The zero Fault is none.
type Fault struct {
	// Code is the HTTP status that the client gets instead of an answer of the server. The server
	// does not receive the call. 0 for none.
	Code int
	// RetryAfter is sent with Code.
	RetryAfter time.Duration
	// Delay is how long the call is delayed first.
	Delay time.Duration
	// Cut is the moment at which the connection is cut.
	Cut Cut
	// Answered is called when the server has carried out a call with CutAfter, before the connection is cut; nil for
	// no call.
	Answered func()
}

// String returns a description of the fault.
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

// Rule returns the fault for a call. Many goroutines call it concurrently.
type Rule func(Call) Fault

// reasons maps codes to their status reasons.
var reasons = map[int]metav1.StatusReason{
	http.StatusUnauthorized:        metav1.StatusReasonUnauthorized,
	http.StatusForbidden:           metav1.StatusReasonForbidden,
	http.StatusConflict:            metav1.StatusReasonConflict,
	http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout:      metav1.StatusReasonTimeout,
}

// refuse answers a call with an error in the format of the API server.
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
		// The status consists of strings and numbers.
		abort()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Code)
	// A client may have disconnected.
	_, _ = w.Write(text)
}
