// Package impersonate acts with the rights of ServiceAccounts: those that OperatorGroups name,
// so that nobody gets more from an operator than such an account may give.
package impersonate

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxClients bounds how many accounts' clients are kept.
const maxClients = 64

// Accounts gives clients that act with the rights of ServiceAccounts. What they
// write passes the same checks as all writes of this process: a copy of its
// configuration keeps them.
type Accounts struct {
	config  *rest.Config
	make    client.NewClientFunc
	options client.Options

	mu      sync.Mutex
	clients map[types.NamespacedName]client.Client
}

// New makes its clients from a configuration, all with the
// same options.
func New(config *rest.Config, newClient client.NewClientFunc, options client.Options) *Accounts {
	return &Accounts{config: config, make: newClient, options: options, clients: map[types.NamespacedName]client.Client{}}
}

// As gives the client of an account.
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
		// They are made again when they are needed again.
		clear(i.clients)
	}
	i.clients[name] = c
	return c, nil
}
