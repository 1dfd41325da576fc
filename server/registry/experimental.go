package registry

import (
	"iter"
	"regexp"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/proto/api"
)

// acknowledgeKey is the request header with which a client acknowledges that the service may
// change. Without the header, the service is hidden.
const (
	acknowledgeKey   = "x-acknowledge-experimental"
	acknowledgeValue = "true"
)

// customName matches the valid schemas and packages of custom objects.
var customName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*$`)

// experimental describes api.ExperimentalRegistry.
var experimental = grpc.ServiceDesc{
	ServiceName: ExperimentalServiceName,
	HandlerType: (*any)(nil),
	Metadata:    api.File_registry_proto.Path(),
	Streams: []grpc.StreamDesc{{
		StreamName: "ExperimentalListPackageCustomSchemas", ServerStreams: true, Handler: listCustomSchemas,
	}},
}

func listCustomSchemas(srv any, out grpc.ServerStream) error {
	request := new(api.ExperimentalListPackageCustomSchemasRequest)
	if err := out.RecvMsg(request); err != nil {
		return err
	}
	s, x, err := serviceOf(srv)
	if err != nil {
		return err
	}
	headers, _ := metadata.FromIncomingContext(out.Context())
	if values := headers.Get(acknowledgeKey); len(values) == 0 || values[0] != acknowledgeValue {
		return nil
	}
	messages, err := customSchemas(x, request)
	if err != nil {
		return s.statusError(x, err)
	}
	return send(out, messages)
}

// customSchemas returns the objects of a schema; an empty package stands for
// objects without one.
func customSchemas(x *index.Index, request *api.ExperimentalListPackageCustomSchemasRequest) (iter.Seq[index.Message], error) {
	if request.GetSchema() == "" {
		return nil, status.Error(codes.InvalidArgument, "schema is required")
	}
	for _, field := range []struct{ name, value string }{
		{"schema", request.GetSchema()}, {"packageName", request.GetPackageName()},
	} {
		if field.value != "" && !customName.MatchString(field.value) {
			return nil, status.Errorf(codes.InvalidArgument, "invalid custom schema query: invalid %s %q: must match %s",
				field.name, field.value, customName)
		}
	}
	return x.Custom(request.GetSchema(), request.GetPackageName())
}
