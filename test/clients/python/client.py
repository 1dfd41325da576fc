"""Shows both contracts of a registry from Python."""

import sys

import grpc

sys.path.insert(0, "gen")

import registry_pb2
import registry_pb2_grpc
from chandlery.registry.v1 import registry_service_pb2 as v1
from chandlery.registry.v1 import registry_service_pb2_grpc as v1_grpc

address = sys.argv[1] if len(sys.argv) > 1 else "localhost:50051"
with grpc.insecure_channel(address) as channel:
    # The frozen contract, which every catalog speaks.
    frozen = registry_pb2_grpc.RegistryStub(channel)
    for package in frozen.ListPackages(registry_pb2.ListPackageRequest(), timeout=30):
        p = frozen.GetPackage(registry_pb2.GetPackageRequest(name=package.name), timeout=30)
        print("package", p.name, p.defaultChannelName, ",".join(f"{c.name}={c.csvName}" for c in p.channels))

    # What a registry of ours answers beyond it.
    extension = v1_grpc.RegistryServiceStub(channel)
    content = extension.GetInfo(v1.GetInfoRequest(), timeout=30).content
    print("content", content.packages, "packages", content.entries, "entries")

    request = v1.ListBundlesRequest(page_size=2)
    while True:
        page = extension.ListBundles(request, timeout=30)
        for b in page.bundles:
            print("bundle", b.package, b.channel, b.name, b.version, "head" if b.is_channel_head else "-")
        request.page_token = page.next_page_token
        if not request.page_token:
            break

    for match in extension.SearchPackages(v1.SearchPackagesRequest(query="LAMP light"), timeout=30).matches:
        print("found", match.package.name, match.package.head)
    for d in extension.ListDeprecations(v1.ListDeprecationsRequest(), timeout=30).deprecations:
        print("deprecated", d.package, d.name, d.message)

    graph = extension.GetUpgradeGraph(v1.GetUpgradeGraphRequest(package="lamp"), timeout=30).graph
    for c in graph.channels:
        for e in c.entries:
            print("edge", c.name, e.name, "replaces", e.replaces or "nothing")

    try:
        extension.GetUpgradeGraph(v1.GetUpgradeGraphRequest(package="candle"), timeout=30)
    except grpc.RpcError as error:
        # gRPC calls it NOT_FOUND here, and NotFound in most languages.
        print("error", error.code().name.title().replace("_", ""), error.details())

    states = extension.Watch(v1.WatchRequest(), timeout=30)
    print("state", "unchanged" if next(states).content.digest == content.digest else "changed")
    states.cancel()
