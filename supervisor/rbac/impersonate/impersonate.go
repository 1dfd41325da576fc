// Package impersonate acts with the permissions of ServiceAccounts, and reports which bindings give them
// permissions. OperatorGroups name these accounts, so that an operator gets no more permissions than its account
// has.
package impersonate

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxClients is the maximum number of accounts whose clients are cached.
const maxClients = 64

// Accounts returns clients that act with the permissions of ServiceAccounts. Their writes pass the same checks
// as all writes of this process, since a copy of its configuration has them.
type Accounts struct {
	config  *rest.Config
	make    client.NewClientFunc
	options client.Options

	mu      sync.Mutex
	clients map[types.NamespacedName]client.Client
}

// New returns Accounts whose clients have the same configuration and options.
func New(config *rest.Config, newClient client.NewClientFunc, options client.Options) *Accounts {
	return &Accounts{config: config, make: newClient, options: options, clients: map[types.NamespacedName]client.Client{}}
}

// As returns the client of an account.
func (a *Accounts) As(name types.NamespacedName) (client.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.clients[name]; c != nil {
		return c, nil
	}
	cfg := rest.CopyConfig(a.config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + name.Namespace + ":" + name.Name}
	c, err := a.make(cfg, a.options)
	if err != nil {
		return nil, fmt.Errorf("making a client for ServiceAccount %s: %w", name, err)
	}
	if len(a.clients) >= maxClients {
		// The clients are created again when they are needed.
		clear(a.clients)
	}
	a.clients[name] = c
	return c, nil
}
