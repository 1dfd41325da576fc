package olmpeer

import (
	"io"
	"net"
	"testing"

	"golang.org/x/net/proxy"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestServices connects through the proxy to a Service with a ready pod, to one without, and to another host.
func TestServices(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	pod, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer pod.Close()
	go func() {
		if connection, err := pod.Accept(); err == nil {
			_, _ = connection.Write([]byte("served"))
			_ = connection.Close()
		}
	}()
	endpoints := func(service string, ready bool) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: service + "-x", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"127.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		}
	}
	s, err := serveServices(t.Context(), fake.NewClientBuilder().WithObjects(endpoints("shelf", true), endpoints("attic", false)).Build(), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	dialer, err := proxy.SOCKS5("tcp", s.listener.Addr().String(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(pod.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"attic.shop.svc", "cellar.shop.svc", "example.com"} {
		if _, err := dialer.Dial("tcp", net.JoinHostPort(host, port)); err == nil {
			t.Errorf("the proxy connected to %s", host)
		}
	}
	connection, err := dialer.Dial("tcp", net.JoinHostPort("shelf.shop.svc", port))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(connection); string(got) != "served" || err != nil {
		t.Errorf("read %q, error %v", got, err)
	}
}
