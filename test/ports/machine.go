package ports

import (
	"net"
	"os"
	"testing"
)

// MachineAddress returns an address of this machine that an EndpointSlice may have. It skips the test if there is none.
func MachineAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if network, is := a.(*net.IPNet); is && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
			return network.IP.String()
		}
	}
	const missing = "the machine has no IPv4 address but that of its loopback interface: connect it to a network"
	if os.Getenv("CI") != "" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}
