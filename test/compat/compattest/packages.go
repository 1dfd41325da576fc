package compattest

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/packageserver"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
)

// packages starts the package server once for all cases.
var packages sync.Once

// AwaitPackage waits until the API of PackageManifests shows a package in the namespace of the case. If the tests
// started the cluster, the first call starts a package server, which runs until the tests end.
func (c *Cluster) AwaitPackage(name string) {
	c.t.Helper()
	if target.bin != "" {
		packages.Do(func() {
			if err := startPackageServer(c.t, c.WithWatch); err != nil {
				c.t.Fatalf("starting the package server: %v", err)
			}
		})
	}
	path := "/apis/packages.operators.coreos.com/v1/namespaces/" + c.Namespace + "/packagemanifests/" + name
	c.Eventually(Patience, func() string {
		if err := Request(c.t.Context(), path); err != nil {
			return "package " + name + " is not served: " + err.Error()
		}
		return ""
	})
}

// startPackageServer starts the program, and creates the objects of its component.
func startPackageServer(t *testing.T, c client.Client) error {
	t.Helper()
	_, text, err := net.SplitHostPort(ports.Address(t))
	if err != nil {
		return fmt.Errorf("reserving a port: %w", err)
	}
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return fmt.Errorf("reserving a port: %w", err)
	}
	host := ports.MachineAddress(t)
	ctx := context.WithoutCancel(t.Context())
	for _, o := range packageserver.Objects(leaseNamespace, host, int32(number)) {
		if err := c.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	_, err = process.Start(ctx, process.Spec{
		Name: packageserver.Name, Path: supervisor(), Log: filepath.Join(target.plane.LogDir(), packageserver.Name+".log"),
		Args: append(packageserver.Args(target.plane.Kubeconfig(), leaseNamespace, host, int32(number)),
			"--global-catalog-namespace", GlobalNamespace, "--catalog-refresh-interval", "1s"),
	})
	if err != nil {
		return fmt.Errorf("starting the program: %w", err)
	}
	return nil
}
