// Package impersonate acts with the permissions of ServiceAccounts. OperatorGroups name these accounts, so that
// an operator gets no more permissions than its account has.
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
func (i *Accounts) As(name types.NamespacedName) (client.Client, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if c := i.clients[name]; c != nil {
		return c, nil
	}
	cfg := rest.CopyConfig(i.config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + name.Namespace + ":" + name.Name}
	c, err := i.make(cfg, i.options)
	if err != nil {
		return nil, fmt.Errorf("making a client for ServiceAccount %s: %w", name, err)
	}
	if len(i.clients) >= maxClients {
		// The clients are created again when they are needed.
		clear(i.clients)
	}
	i.clients[name] = c
	return c, nil
}
