package server

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chandlery/chandlery/internal/keylimit"
)

// Limits of answers that are encoded as a whole, which takes several times their size in memory. The namespace of a request
// is the key, so users of one namespace do not block those of others.
const (
	maxEncodings             = 2
	maxEncodingsPerNamespace = 1
	// maxAdmitted includes requests that wait. It leaves most of maxRequests to other requests.
	maxAdmitted             = 20
	maxAdmittedPerNamespace = 10
	// encodingWait limits how long a request waits.
	encodingWait = 10 * time.Second
	// retryBusy is when clients repeat a request that was refused, in seconds.
	retryBusy = 5
	// smallPackage is the maximum size of a package that is sent without a limit, in bytes of JSON.
	smallPackage = 256 << 10
)

// encodings limits how many answers are encoded as a whole at once. It is safe for concurrent use.
type encodings struct {
	admitted, running *keylimit.Limiter
	wait              time.Duration
}

func newEncodings() *encodings {
	return &encodings{
		admitted: keylimit.New(maxAdmitted, maxAdmittedPerNamespace), running: keylimit.New(maxEncodings, maxEncodingsPerNamespace), wait: encodingWait,
	}
}

// acquire waits until a request for a namespace may be answered. It returns a function that ends the answer. The error is
// that for the client.
func (e *encodings) acquire(ctx context.Context, namespace string) (release func(), err error) {
	leave := e.admitted.TryAcquire(namespace)
	if leave == nil {
		return nil, busy()
	}
	ctx, cancel := context.WithTimeout(ctx, e.wait)
	defer cancel()
	end, err := e.running.Acquire(ctx, namespace)
	if err != nil {
		leave()
		return nil, busy()
	}
	return func() {
		end()
		leave()
	}, nil
}

func busy() error {
	return apierrors.NewTooManyRequests("too many large answers are being sent; use JSON or a table, or repeat the request later", retryBusy)
}
