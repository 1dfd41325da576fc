package registry

import (
	"context"
	"errors"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/proto/api"
)

// Service answers the RPCs of api.Registry and api.ExperimentalRegistry.
type Service struct {
	// current returns the index to answer from, or nil if there is none yet. Each call reads it
	// once, so a stream ends on the content it began with.
	current func() *index.Index
	// damaged is called with an index that turns out to be damaged.
	damaged func(*index.Index, error)
}

// New returns a service that answers from the index that current returns at the beginning of a
// call. While current returns nil, all RPCs fail with Unavailable. A call that finds the index
// damaged fails with DataLoss and calls damaged.
func New(current func() *index.Index, damaged func(*index.Index, error)) *Service {
	return &Service{current: current, damaged: damaged}
}

// The full names of the services in health checks.
const (
	ServiceName             = "api.Registry"
	ExperimentalServiceName = "api.ExperimentalRegistry"
)

// Register adds the services to a server. The server must use [Codec].
func Register(server grpc.ServiceRegistrar, s *Service) {
	server.RegisterService(&description, s)
	server.RegisterService(&experimental, s)
}

var errLoading = status.Error(codes.Unavailable, "the catalog is not loaded yet")

var errNoService = status.Error(codes.Internal, "the service is not registered by this package")

// serviceOf returns a registered service and the current index.
func serviceOf(srv any) (*Service, *index.Index, error) {
	s, ok := srv.(*Service)
	if !ok {
		return nil, nil, errNoService
	}
	x := s.current()
	if x == nil {
		return nil, nil, errLoading
	}
	return s, x, nil
}

// statusError returns the client's status for an error of the index.
func (s *Service) statusError(x *index.Index, err error) error {
	if missing, ok := errors.AsType[*index.NotFoundError](err); ok {
		return status.Error(codes.NotFound, missing.Message)
	}
	if errors.Is(err, index.ErrDamaged) {
		s.damaged(x, err)
		return status.Error(damageCode(err), err.Error())
	}
	if known, ok := status.FromError(err); ok {
		return known.Err()
	}
	return status.Error(codes.Internal, err.Error())
}

// damageCode returns the status code for a damaged index. A server stops if its index file was
// truncated. Clients retry and reach another server or its successor.
func damageCode(err error) codes.Code {
	if errors.Is(err, index.ErrTruncated) {
		return codes.Unavailable
	}
	return codes.DataLoss
}

// messageFunc answers a unary RPC.
type messageFunc[Request any] func(*index.Index, *Request) (index.Message, error)

// streamFunc answers a streaming RPC.
type streamFunc[Request any] func(*index.Index, *Request) (iter.Seq[index.Message], error)

// description maps the RPCs to functions. It has the names of the generated description.
var description = grpc.ServiceDesc{
	ServiceName: ServiceName,
	HandlerType: (*any)(nil),
	Metadata:    api.File_registry_proto.Path(),
	Methods: []grpc.MethodDesc{
		unary("GetPackage", func(x *index.Index, r *api.GetPackageRequest) (index.Message, error) {
			return x.Package(r.GetName())
		}),
		unary("GetBundle", func(x *index.Index, r *api.GetBundleRequest) (index.Message, error) {
			return x.Bundle(r.GetPkgName(), r.GetChannelName(), r.GetCsvName())
		}),
		unary("GetBundleForChannel", func(x *index.Index, r *api.GetBundleInChannelRequest) (index.Message, error) {
			return x.ChannelHead(r.GetPkgName(), r.GetChannelName())
		}),
		unary("GetBundleThatReplaces", func(x *index.Index, r *api.GetReplacementRequest) (index.Message, error) {
			return x.Replacement(r.GetCsvName(), r.GetPkgName(), r.GetChannelName())
		}),
		unary("GetDefaultBundleThatProvides", func(x *index.Index, r *api.GetDefaultProviderRequest) (index.Message, error) {
			return x.DefaultProvider(gvk(r))
		}),
	},
	Streams: []grpc.StreamDesc{
		stream("ListPackages", func(x *index.Index, _ *api.ListPackageRequest) (iter.Seq[index.Message], error) {
			return listed(x, x.Packages())
		}),
		stream("ListBundles", func(x *index.Index, _ *api.ListBundlesRequest) (iter.Seq[index.Message], error) {
			return listed(x, x.Bundles())
		}),
		stream("GetChannelEntriesThatReplace", func(x *index.Index, r *api.GetAllReplacementsRequest) (iter.Seq[index.Message], error) {
			return x.EntriesThatReplace(r.GetCsvName())
		}),
		stream("GetChannelEntriesThatProvide", func(x *index.Index, r *api.GetAllProvidersRequest) (iter.Seq[index.Message], error) {
			return x.EntriesThatProvide(gvk(r))
		}),
		stream("GetLatestChannelEntriesThatProvide",
			func(x *index.Index, r *api.GetLatestProvidersRequest) (iter.Seq[index.Message], error) {
				return x.LatestEntriesThatProvide(gvk(r))
			}),
	},
}

// apiRequest is the interface of the three requests for providers.
type apiRequest interface {
	GetGroup() string
	GetVersion() string
	GetKind() string
}

func gvk(r apiRequest) bundles.GVK {
	return bundles.GVK{Group: r.GetGroup(), Version: r.GetVersion(), Kind: r.GetKind()}
}

// listed returns messages after checking that none of them is damaged.
func listed(x *index.Index, messages iter.Seq[index.Message]) (iter.Seq[index.Message], error) {
	if err := x.CheckLists(); err != nil {
		return nil, err
	}
	return messages, nil
}

func unary[Request any](name string, answer messageFunc[Request]) grpc.MethodDesc {
	method := "/" + ServiceName + "/" + name
	handle := func(
		srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor,
	) (any, error) {
		request := new(Request)
		if err := decode(request); err != nil {
			return nil, err
		}
		handler := func(context.Context, any) (any, error) {
			s, x, err := serviceOf(srv)
			if err != nil {
				return nil, err
			}
			message, err := answer(x, request)
			if err != nil {
				return nil, s.statusError(x, err)
			}
			return &message, nil
		}
		if intercept == nil {
			return handler(ctx, request)
		}
		return intercept(ctx, request, &grpc.UnaryServerInfo{Server: srv, FullMethod: method}, handler)
	}
	return grpc.MethodDesc{MethodName: name, Handler: handle}
}

func stream[Request any](name string, answer streamFunc[Request]) grpc.StreamDesc {
	handle := func(srv any, out grpc.ServerStream) error {
		request := new(Request)
		if err := out.RecvMsg(request); err != nil {
			return err
		}
		s, x, err := serviceOf(srv)
		if err != nil {
			return err
		}
		messages, err := answer(x, request)
		if err != nil {
			return s.statusError(x, err)
		}
		if err := out.SetHeader(metadata.Pairs(api.ContentDigestHeader, x.Digest())); err != nil {
			return status.Errorf(codes.Internal, "announcing the content: %v", err)
		}
		return send(out, messages)
	}
	return grpc.StreamDesc{StreamName: name, Handler: handle, ServerStreams: true}
}

// send sends messages one after the other.
func send(out grpc.ServerStream, messages iter.Seq[index.Message]) error {
	// gRPC has encoded a message by the time SendMsg returns.
	current := new(index.Message)
	for *current = range messages {
		if err := out.SendMsg(current); err != nil {
			return err
		}
	}
	return nil
}
