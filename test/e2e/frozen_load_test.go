package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/sampling"
)

// defaultRounds is the number of frozen leaders without ROUNDS.
const defaultRounds = 20

// write is a request in the audit log that changes something.
type write struct {
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	ObjectRef  struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Received metav1.MicroTime `json:"requestReceivedTimestamp"`
}

// leaderOnly reports whether only a leader may send the request. Leases, Events and metadata of
// pods do not count.
func (w *write) leaderOnly() bool {
	return !slices.Contains([]string{"leases", "events"}, w.ObjectRef.Resource) &&
		(w.ObjectRef.Resource != "pods" || w.ObjectRef.Subresource != "status")
}

// auditLog reads an audit log from its last position.
type auditLog struct {
	path   string
	offset int64
	writes map[string][]write
}

// read returns the leader-only writes of a user so far.
func (a *auditLog) read(t *testing.T, user string) []write {
	t.Helper()
	file, err := os.Open(a.path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Seek(a.offset, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			// An unfinished line is read the next time.
			return a.writes[user]
		}
		if err != nil {
			t.Fatal(err)
		}
		a.offset += int64(len(line))
		var w write
		if err := json.Unmarshal(bytes.TrimSpace(line), &w); err != nil {
			t.Fatalf("reading the audit log: %v", err)
		}
		if w.leaderOnly() {
			a.writes[w.User.Username] = append(a.writes[w.User.Username], w)
		}
	}
}

// keepBusy changes OperatorGroups until the test ends, slowly while slow is set. The leader reacts to each change with
// several writes.
func keepBusy(t *testing.T, c client.Client, namespaces []string, slow *atomic.Bool) {
	t.Helper()
	const (
		workers = 4
		rest    = 500 * time.Millisecond
	)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for worker := range workers {
		running.Go(func() {
			for n := worker; ctx.Err() == nil; n += workers {
				round := n / len(namespaces)
				namespace, other := namespaces[n%len(namespaces)], namespaces[(n+1+round%(len(namespaces)-1))%len(namespaces)]
				patch := fmt.Sprintf(`{"spec":{"targetNamespaces":[%q,%q]}}`, namespace, other)
				group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"}}
				if err := c.Patch(ctx, group, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil && ctx.Err() == nil {
					t.Errorf("changing an OperatorGroup: %v", err)
					return
				}
				if slow.Load() {
					pause.For(ctx, rest)
				}
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// TestFrozenLeaderUnderLoad freezes leaders that write continuously for longer than their Lease,
// and resumes them when another one leads. None of their pending writes may arrive.
func TestFrozenLeaderUnderLoad(t *testing.T) {
	const (
		groups = 40
		// warm is the number of writes of a leader before it is frozen.
		warm = 100
	)
	c, cp := newClient(t), controlplane.Get(t)
	var namespaces []string
	for i := range groups {
		namespace := fmt.Sprintf("busy-%d", i)
		create(t, c, namespaceObject(namespace), operatorGroup(namespace))
		namespaces = append(namespaces, namespace)
	}
	start := func(n int) *process.Process {
		identity := fmt.Sprintf("busy-leader-%d", n)
		kubeconfig, err := cp.NewKubeconfig(identity, "system:masters")
		if err != nil {
			t.Fatal(err)
		}
		return startSupervisorAs(t, identity, kubeconfig, "--concurrency", "16")
	}
	leads := func(p *process.Process) {
		eventually(t, p.Name()+" to lead", func(ctx context.Context) (bool, string) {
			name, err := holder(ctx, c)
			return name == p.Name(), fmt.Sprintf("%q leads, %v", name, err)
		})
	}
	log := &auditLog{path: cp.AuditLog(), writes: map[string][]write{}}
	thawed := map[string]time.Time{}
	// While the leader is frozen, the Lease expires and the next one starts: there is nothing to fence.
	var frozen atomic.Bool
	keepBusy(t, c, namespaces, &frozen)
	leader := start(0)
	leads(leader)
	for n := 1; n <= sampling.Number(t, "ROUNDS", defaultRounds, 1); n++ {
		next := start(n)
		eventually(t, leader.Name()+" to write", func(context.Context) (bool, string) {
			written := len(log.read(t, leader.Name()))
			return written >= warm, fmt.Sprintf("%d writes", written)
		})
		if err := leader.Freeze(); err != nil {
			t.Fatal(err)
		}
		frozen.Store(true)
		leads(next)
		frozen.Store(false)
		thawed[leader.Name()] = time.Now()
		if err := leader.Thaw(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-leader.Done():
		case <-time.After(patience):
			t.Fatalf("%s continues though it no longer leads; see %s", leader.Name(), leader.Log())
		}
		var exit *process.ExitError
		if err := leader.Unexpected(); !errors.As(err, &exit) || exit.Err == nil {
			t.Errorf("%s ended without an error: %v", leader.Name(), err)
		}
		leader = next
	}
	for name, since := range thawed {
		var late []string
		for _, w := range log.read(t, name) {
			if w.Received.After(since) {
				late = append(late, fmt.Sprintf("%s after %s: %s %s", name, w.Received.Sub(since), w.Verb, w.RequestURI))
			}
		}
		if len(late) > 0 {
			t.Errorf("%d writes arrived after the thaw:\n%s", len(late), strings.Join(late, "\n"))
		}
	}
}
