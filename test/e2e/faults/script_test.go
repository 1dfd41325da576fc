package faults_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/chandlery/chandlery/test/apiproxy"
)

// kind is a way in which a call fails.
type kind struct {
	name  string
	fault apiproxy.Fault
}

var (
	broken    = kind{"broken", apiproxy.Fault{Code: http.StatusInternalServerError}}
	conflicts = kind{"conflicts", apiproxy.Fault{Code: http.StatusConflict}}
	unheard   = kind{"cut before it is heard", apiproxy.Fault{Cut: apiproxy.CutBefore}}
	answered  = kind{"cut before it is answered", apiproxy.Fault{Cut: apiproxy.CutAfter}}
	slow      = kind{"slow", apiproxy.Fault{Delay: 2 * time.Second}}
)

// kinds returns the ways in which a call can fail. A read cannot fail after it was carried out.
func kinds(mutates bool) []kind {
	if mutates {
		return []kind{broken, conflicts, unheard, answered, slow}
	}
	return []kind{broken, unheard}
}

// place is one call of an installation, independent of its namespace: the nth call with a name.
type place struct {
	name    string
	nth     int
	mutates bool
}

func (p place) String() string { return fmt.Sprintf("%s #%d", p.name, p.nth) }

// script determines the failing calls of a namespace and records all calls.
type script struct {
	namespace string

	mu sync.Mutex
	// faults are the faults of future calls.
	faults map[place]kind
	counts map[string]int
	// mutating are the names of the calls that change something.
	mutating map[string]bool
	plans    map[string]string
	// order has the names in the order of their first calls.
	order []string
}

func newScript(namespace string) *script {
	return &script{
		namespace: namespace, faults: map[place]kind{}, counts: map[string]int{},
		mutating: map[string]bool{}, plans: map[string]string{},
	}
}

// judge counts a call of the namespace and returns its fault.
func (s *script) judge(c apiproxy.Call) apiproxy.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Resource == "events" {
		// Events are created in any order, and nothing depends on them.
		return apiproxy.Fault{}
	}
	name := s.nameOf(c)
	if s.counts[name] == 0 {
		s.order, s.mutating[name] = append(s.order, name), c.Mutates()
	}
	s.counts[name]++
	at := place{name: name, nth: s.counts[name], mutates: c.Mutates()}
	fault := s.faults[at].fault
	delete(s.faults, at)
	return fault
}

// count returns how often a call has been made.
func (s *script) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[name]
}

// left returns the faults whose calls have not been made.
func (s *script) left() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for at, k := range s.faults {
		list = append(list, fmt.Sprintf("%s %s", at, k.name))
	}
	return list
}

var (
	planName = regexp.MustCompile(`install-[a-z2-7]{10}(-\d+)?`)
	roleHash = regexp.MustCompile(`-[0-9A-Za-z]{30,44}$`)
)

// nameOf returns a name for a call that is the same in all namespaces.
func (s *script) nameOf(c apiproxy.Call) string {
	c.Namespace = ""
	c.Name = planName.ReplaceAllStringFunc(c.Name, func(name string) string {
		if s.plans[name] == "" {
			s.plans[name] = fmt.Sprintf("plan-%d", len(s.plans)+1)
		}
		return s.plans[name]
	})
	c.Name = strings.ReplaceAll(roleHash.ReplaceAllString(c.Name, "-HASH"), s.namespace, "NS")
	return c.String()
}

// places returns every call in all of some scripts.
func places(scripts []*script) []place {
	var common []place
	first := scripts[0]
	first.mu.Lock()
	defer first.mu.Unlock()
	for _, name := range first.order {
		least := first.counts[name]
		for _, other := range scripts[1:] {
			least = min(least, other.count(name))
		}
		if !first.mutating[name] {
			// Repeated reads have the same purpose.
			least = min(least, 2)
		}
		for nth := 1; nth <= least; nth++ {
			common = append(common, place{name: name, nth: nth, mutates: first.mutating[name]})
		}
	}
	return common
}
