package conformance

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/descriptorpb"
)

func TestReflection(t *testing.T) {
	ours, theirs := startPeers(t, writeFiles(t, oddCatalog))
	for _, symbol := range []string{"api.Registry", "api.ExperimentalRegistry", "api.Bundle"} {
		got, want := descriptor(t, ours, symbol), descriptor(t, theirs, symbol)
		// The Go package is not part of the contract.
		got.Options, want.Options = nil, nil
		// The order of declarations is not part of it either.
		if diff := gocmp.Diff(want, got, protocmp.Transform(),
			protocmp.SortRepeated(func(a, b *descriptorpb.DescriptorProto) bool { return a.GetName() < b.GetName() }),
			protocmp.SortRepeated(func(a, b *descriptorpb.ServiceDescriptorProto) bool { return a.GetName() < b.GetName() }),
		); diff != "" {
			t.Errorf("%s: -want +got:\n%s", symbol, diff)
		}
	}
}

// descriptor requests the file that declares a symbol.
func descriptor(t *testing.T, p peer, symbol string) *descriptorpb.FileDescriptorProto {
	t.Helper()
	stream, err := reflectionpb.NewServerReflectionClient(p.conn).ServerReflectionInfo(t.Context(), grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	request := &reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: symbol},
	}
	if err := stream.Send(request); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	// The requested file comes first, and then its imports.
	files := answer.GetFileDescriptorResponse().GetFileDescriptorProto()
	if len(files) == 0 {
		t.Fatalf("no file declares %s: %v", symbol, answer)
	}
	file := &descriptorpb.FileDescriptorProto{}
	if err := proto.Unmarshal(files[0], file); err != nil {
		t.Fatal(err)
	}
	return file
}
