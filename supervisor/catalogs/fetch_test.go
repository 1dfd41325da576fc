package catalogs_test

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

// TestRead reads a catalog once from servers with different APIs.
func TestRead(t *testing.T) {
	for name, server := range map[string]*fakecatalog.Server{
		"List": fakecatalog.Start(t, lamp("{}")), "Pages": fakecatalog.StartExtended(t, lamp("{}")),
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := grpc.NewClient(server.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			s, err := catalogs.Read(t.Context(), conn)
			if err != nil {
				t.Fatal(err)
			}
			if p := s.Content.Package("lamp"); p == nil || p.Bundle("lamp.v1") == nil {
				t.Errorf("packages %v", s.Content.Packages())
			}
			listed := name == "List"
			if got := s.Manifests("lamp", "lamp.v1") != ""; got != listed {
				t.Errorf("digests of manifests are known: %v", got)
			}
			if server.Listed() > 0 != listed || server.Pages() > 0 == listed {
				t.Errorf("%d lists and %d pages", server.Listed(), server.Pages())
			}
			server.Fail(status.Error(codes.PermissionDenied, "not you"))
			lists := server.Listed()
			if _, err := catalogs.Read(t.Context(), conn); status.Code(err) != codes.PermissionDenied || (!listed && server.Listed() != lists) {
				t.Errorf("error %v, %d lists", err, server.Listed())
			}
		})
	}
}
