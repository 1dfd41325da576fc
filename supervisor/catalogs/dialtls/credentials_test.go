package dialtls_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
	"github.com/chandlery/chandlery/test/certificates"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience limits each call of a test.
const patience = 20 * time.Second

// serve starts a gRPC server; in plain text without a configuration. It returns its address.
func serve(t *testing.T, config *tls.Config) string {
	t.Helper()
	var options []grpc.ServerOption
	if config != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	listener := listen(t)
	server := grpc.NewServer(options...)
	healthpb.RegisterHealthServer(server, health.NewServer())
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		server.Stop()
		running.Wait()
	})
	return listener.Addr().String()
}

// handle starts a server that handles each connection with a function.
func handle(t *testing.T, with func(net.Conn)) string {
	t.Helper()
	listener := listen(t)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				with(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return listener.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// call makes one call over a new connection.
func call(t *testing.T, c *dialtls.Credentials, address string) error {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(c))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

// client describes a client of a test. The zero value is plain text.
type client struct {
	tls  bool
	ca   *certificates.Authority // nil for those of the system
	pair *certificates.Pair
	name string
}

func (c client) security(t *testing.T) dialtls.Security {
	t.Helper()
	s := dialtls.Security{Settings: dialtls.Settings{Enabled: c.tls, ServerName: c.name}}
	if !c.tls {
		return s
	}
	var in dialtls.Input
	if c.ca != nil {
		s.Settings.CA, in.CA = dialtls.Source{Kind: "ConfigMap", Name: "ca", Key: "ca.crt"}, c.ca.PEM
	}
	if c.pair != nil {
		s.Settings.ClientSecret, in.Certificate, in.Key = "olm-client", c.pair.Certificate, c.pair.Key
	}
	s.Material, s.Problem = dialtls.NewMaterial(s.Settings, in)
	if s.Problem != nil {
		t.Fatal(s.Problem)
	}
	return s
}

// TestFailures connects to servers that fail in every way, and checks the reason and the text.
func TestFailures(t *testing.T) {
	ours, theirs := certificates.NewAuthority(t, "ours"), certificates.NewAuthority(t, "theirs")
	hour := func(n int) time.Time { return time.Now().Add(time.Duration(n) * time.Hour) }
	date := func(at time.Time) string { return at.UTC().Format(time.DateOnly) }
	good := ours.Sign(t, certificates.Request{})
	server := func(change ...func(*tls.Config)) func(*testing.T) string {
		return func(t *testing.T) string {
			t.Helper()
			config := good.Server(t)
			for _, c := range change {
				c(config)
			}
			return serve(t, config)
		}
	}
	with := func(p certificates.Pair) func(*tls.Config) {
		return func(c *tls.Config) { c.Certificates = []tls.Certificate{p.TLS(t)} }
	}
	mutual := func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, ours.Pool() }
	old := func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }
	plain := func(t *testing.T) string { t.Helper(); return serve(t, nil) }
	hangUp := func(t *testing.T) string { t.Helper(); return handle(t, func(net.Conn) {}) }
	answer := func(text string) func(t *testing.T) string {
		return func(t *testing.T) string {
			t.Helper()
			return handle(t, func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 1024))
				_, _ = conn.Write([]byte(text))
			})
		}
	}
	pair := func(a *certificates.Authority, r certificates.Request) *certificates.Pair {
		p := a.Sign(t, r)
		return &p
	}
	trusting := client{tls: true, ca: ours}
	ended, begins := hour(-1), hour(24)
	for name, tt := range map[string]struct {
		server func(*testing.T) string
		client client
		want   dialtls.Reason // empty for success
		text   string
	}{
		"plain text":        {server: plain},
		"TLS":               {server: server(), client: trusting},
		"TLS 1.2":           {server: server(old), client: trusting},
		"mutual TLS":        {server: server(mutual), client: client{tls: true, ca: ours, pair: pair(ours, certificates.Request{})}},
		"another name":      {server: server(with(ours.Sign(t, certificates.Request{Hosts: []string{"shop.example"}}))), client: client{tls: true, ca: ours, name: "shop.example"}},
		"not asked for one": {server: server(), client: client{tls: true, ca: ours, pair: pair(theirs, certificates.Request{})}},
		"unknown authority": {server: server(), client: client{tls: true, ca: theirs}, want: dialtls.UnknownAuthority, text: `the server's certificate is signed by an unknown authority; its issuer is "CN=ours"`},
		"system's":          {server: server(), client: client{tls: true}, want: dialtls.UnknownAuthority, text: `the server's certificate is signed by an unknown authority; its issuer is "CN=ours"`},
		"wrong name": {
			server: server(with(ours.Sign(t, certificates.Request{Hosts: []string{"a.example", "b.example", "c.example", "d.example", "e.example", "f.example", "192.0.2.1"}}))),
			client: trusting, want: dialtls.WrongServerName,
			text: "the server's certificate is valid for a.example, b.example, c.example, d.example, e.example and 2 more, not for 127.0.0.1",
		},
		"wrong name of its own": {server: server(), client: client{tls: true, ca: ours, name: "shop.example"}, want: dialtls.WrongServerName, text: "the server's certificate is valid for 127.0.0.1, not for shop.example"},
		"no name": {
			server: server(with(ours.Sign(t, certificates.Request{Hosts: []string{}}))), client: trusting, want: dialtls.WrongServerName,
			text: "the server's certificate has no subject alternative names, so it is not valid for 127.0.0.1",
		},
		"expired": {
			server: server(with(ours.Sign(t, certificates.Request{NotBefore: hour(-2), NotAfter: ended}))), client: trusting,
			want: dialtls.ServerCertificateExpired, text: "the server's certificate has expired on " + date(ended),
		},
		"not yet valid": {
			server: server(with(ours.Sign(t, certificates.Request{NotBefore: begins, NotAfter: hour(48)}))), client: trusting,
			want: dialtls.ServerCertificateNotYetValid, text: "the server's certificate is valid only from " + date(begins),
		},
		"for clients": {
			server: server(with(ours.Sign(t, certificates.Request{Usage: x509.ExtKeyUsageClientAuth}))), client: trusting,
			want: dialtls.ServerCertificateInvalid, text: "the server's certificate is not for servers: it lacks the extended key usage serverAuth",
		},
		"server in plain text": {server: plain, client: trusting, want: dialtls.ServerWithoutTLS, text: "the server does not use TLS"},
		"server of a web page": {server: answer("HTTP/1.1 400 Bad Request\r\n\r\n"), client: trusting, want: dialtls.ServerWithoutTLS, text: "the server does not use TLS"},
		"server hangs up":      {server: hangUp, client: trusting, want: dialtls.HandshakeFailed, text: "the server closed the connection during the TLS handshake"},
		"client in plain text": {server: server(), client: client{}, want: dialtls.ServerExpectsTLS, text: "the server at ADDRESS closed the connection instead of answering in plain text, as servers with TLS do"},
		"alert in plain text":  {server: answer("\x15\x03\x01\x00\x02\x02\x46"), client: client{}, want: dialtls.ServerExpectsTLS, text: "the server at ADDRESS uses TLS, and the CatalogSource does not"},
		"no HTTP/2":            {server: handleTLS(good, nil), client: trusting, want: dialtls.ServerWithoutGRPC, text: "the server uses TLS, but not HTTP/2"},
		"HTTP/1.1":             {server: handleTLS(good, []string{"http/1.1"}), client: trusting, want: dialtls.ServerWithoutGRPC, text: "the server uses TLS, but not HTTP/2"},
		"old TLS":              {server: server(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }), client: trusting, want: dialtls.NoCommonParameters, text: "the server has no TLS version or cipher suite in common with the supervisor: tls: protocol version not supported"},
		"certificate required": {server: server(mutual), client: trusting, want: dialtls.ClientCertificateRequired, text: "the server requires a client certificate"},
		"certificate required in TLS 1.2": {
			server: server(mutual, old), client: trusting, want: dialtls.ClientCertificateRequired, text: "the server requires a client certificate",
		},
		"certificate required, without an alert": {
			server: handleTLS(good, []string{"h2"}, func(c *tls.Config) { c.ClientAuth = tls.RequestClientCert }), client: trusting,
			want: dialtls.ClientCertificateRequired, text: "the server requested a client certificate, and closed the connection without one",
		},
		"certificate refused, without an alert": {
			server: handleTLS(good, []string{"h2"}, func(c *tls.Config) { c.ClientAuth = tls.RequestClientCert }),
			client: client{tls: true, ca: ours, pair: pair(theirs, certificates.Request{})},
			want:   dialtls.ClientCertificateRefused, text: "the server refuses the client certificate in Secret olm-client: it closed the connection",
		},
		"hang-up after the handshake": {server: handleTLS(good, []string{"h2"}), client: trusting, want: dialtls.HandshakeFailed, text: "the server closed the connection after the TLS handshake"},
		"certificate refused": {
			server: server(mutual), client: client{tls: true, ca: ours, pair: pair(theirs, certificates.Request{})},
			want: dialtls.ClientCertificateRefused, text: "the server refuses the client certificate in Secret olm-client: tls: unknown certificate authority",
		},
		"certificate refused in TLS 1.2": {
			server: server(mutual, old), client: client{tls: true, ca: ours, pair: pair(theirs, certificates.Request{})},
			want: dialtls.ClientCertificateRefused, text: "the server refuses the client certificate in Secret olm-client: tls: unknown certificate authority",
		},
		"certificate expired": {
			server: server(mutual), client: client{tls: true, ca: ours, pair: pair(ours, certificates.Request{NotBefore: hour(-2), NotAfter: ended})},
			want: dialtls.ClientCertificateExpired, text: "the client certificate in Secret olm-client has expired on " + date(ended),
		},
		"certificate not yet valid": {
			server: server(mutual), client: client{tls: true, ca: ours, pair: pair(ours, certificates.Request{NotBefore: begins, NotAfter: hour(48)})},
			want: dialtls.ClientCertificateNotYetValid, text: "the client certificate in Secret olm-client is valid only from " + date(begins),
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, address := dialtls.NewCredentials(tt.client.security(t)), tt.server(t)
			err := call(t, c, address)
			if (err == nil) != (tt.want == "") {
				t.Fatalf("the call ended with %v, want %q", err, tt.want)
			}
			failure := c.Failure()
			if failure == nil {
				failure = &dialtls.Error{}
			}
			if want := strings.ReplaceAll(tt.text, "ADDRESS", address); failure.Reason != tt.want || failure.Text != want {
				t.Errorf("got  %s: %s\nwant %s: %s\n(call: %v)", failure.Reason, failure.Text, tt.want, want, err)
			}
			if tt.want != "" && failure.Remedy() == "" {
				t.Error("there is no remedy")
			}
		})
	}
}

// handleTLS returns a function that starts a server with TLS and the given protocols. It answers nothing.
func handleTLS(pair certificates.Pair, protocols []string, change ...func(*tls.Config)) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		config := pair.Server(t)
		config.NextProtos = protocols
		for _, c := range change {
			c(config)
		}
		return handle(t, func(conn net.Conn) {
			secured := tls.Server(conn, config)
			if secured.HandshakeContext(t.Context()) == nil {
				_, _ = secured.Read(make([]byte, 1))
			}
		})
	}
}

// TestUpdate replaces certificates: a broken one leaves the former in use, unless other settings are wanted.
func TestUpdate(t *testing.T) {
	ours, theirs := certificates.NewAuthority(t, "ours"), certificates.NewAuthority(t, "theirs")
	address := serve(t, ours.Sign(t, certificates.Request{}).Server(t))
	good, other := client{tls: true, ca: ours}.security(t), client{tls: true, ca: theirs}.security(t)
	renamed := client{tls: true, ca: ours, name: "127.0.0.1"}.security(t)
	broken := dialtls.Security{Settings: good.Settings, Problem: &dialtls.Error{Reason: dialtls.CAInvalid, Text: "broken"}}
	c := dialtls.NewCredentials(broken)
	for _, step := range []struct {
		name    string
		with    dialtls.Security
		changed bool
		inUse   bool
		fails   dialtls.Reason
	}{
		{"still broken", broken, false, false, dialtls.CAInvalid},
		{"good", good, true, true, ""},
		{"the same", good, false, true, ""},
		{"another authority", other, true, true, dialtls.UnknownAuthority},
		{"good again", good, true, true, ""},
		{"broken again", broken, true, true, ""},
		{"other settings", renamed, true, true, ""},
		{"broken with other settings", broken, true, false, dialtls.CAInvalid},
	} {
		if changed := c.Update(step.with); changed != step.changed {
			t.Errorf("%s: changed is %t", step.name, changed)
		}
		status := c.Status(time.Now())
		if status.Problem != step.with.Problem || status.InUse != step.inUse || !status.Encrypted {
			t.Errorf("%s: status is %+v", step.name, status)
		}
		err := call(t, c, address)
		if failure := c.Failure(); (err == nil) != (step.fails == "") || step.fails != "" && (failure == nil || failure.Reason != step.fails) {
			t.Errorf("%s: the call ended with %v, want %q", step.name, err, step.fails)
		}
	}
}

// TestDialer checks that the failure of an earlier connection does not hide that nothing listens any more.
func TestDialer(t *testing.T) {
	ours, theirs := certificates.NewAuthority(t, "ours"), certificates.NewAuthority(t, "theirs")
	c := dialtls.NewCredentials(client{tls: true, ca: theirs}.security(t))
	if err := call(t, c, serve(t, ours.Sign(t, certificates.Request{}).Server(t))); err == nil || c.Failure() == nil {
		t.Fatalf("the call ended with %v", err)
	}
	refused := errors.New("connection refused")
	_, err := c.Dialer(func(context.Context, string) (net.Conn, error) { return nil, refused })(t.Context(), "127.0.0.1:1")
	if !errors.Is(err, refused) || c.Failure() != nil {
		t.Errorf("error %v, failure %v", err, c.Failure())
	}
}

// TestServerSide checks that the credentials are for clients only.
func TestServerSide(t *testing.T) {
	c := dialtls.NewCredentials(dialtls.Security{})
	if _, _, err := c.ServerHandshake(nil); err == nil || c.Info().SecurityProtocol != "insecure" || c.Clone() != c || c.OverrideServerName("x") != nil {
		t.Errorf("error %v, protocol %s", err, c.Info().SecurityProtocol)
	}
}
