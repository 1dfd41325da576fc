import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";

import { RegistryService } from "../gen/chandlery/registry/v1/registry_service_pb.js";
import { Registry } from "../gen/registry_pb.js";

const address = process.argv[2] ?? "localhost:50051";
const transport = createGrpcTransport({ baseUrl: `http://${address}` });

// The frozen contract, which every catalog speaks.
const registry = createClient(Registry, transport);
for await (const { name } of registry.listPackages({})) {
  const { defaultChannelName, channels } = await registry.getPackage({ name });
  console.log("package", name, defaultChannelName, channels.map((c) => `${c.name}=${c.csvName}`).join(","));
}

// What ours answers beyond it.
const extension = createClient(RegistryService, transport);
const { content } = await extension.getInfo({});
console.log("content", content?.packages, "packages", content?.entries, "entries");

let pageToken = "";
do {
  const page = await extension.listBundles({ pageSize: 2, pageToken });
  for (const b of page.bundles) {
    console.log("bundle", b.package, b.channel, b.name, b.version, b.isChannelHead ? "head" : "-");
  }
  pageToken = page.nextPageToken;
} while (pageToken !== "");

for (const { package: found } of (await extension.searchPackages({ query: "LAMP light" })).matches) {
  console.log("found", found?.name, found?.head);
}
for (const { package: name, name: object, message } of (await extension.listDeprecations({})).deprecations) {
  console.log("deprecated", name, object, message);
}

const { graph } = await extension.getUpgradeGraph({ package: "lamp" });
for (const channel of graph?.channels ?? []) {
  for (const e of channel.entries) {
    console.log("edge", channel.name, e.name, "replaces", e.replaces || "nothing");
  }
}

try {
  await extension.getUpgradeGraph({ package: "candle" });
} catch (error) {
  const { code, rawMessage } = ConnectError.from(error);
  console.log("error", Code[code], rawMessage);
}

// A watch has no end of its own: abort it when there is nothing more to wait for.
const stop = new AbortController();
for await (const state of extension.watch({}, { signal: stop.signal })) {
  console.log("state", state.content?.digest === content?.digest ? "unchanged" : "changed");
  stop.abort();
  break;
}
