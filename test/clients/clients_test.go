package clients

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/programs"
)

func TestClients(t *testing.T) {
	address := serve(t)
	for name, client := range map[string]func(*testing.T, string){
		"Go": goClient, "TypeScript": typeScript, "Python": python, "Grpcurl": grpcurl,
	} {
		t.Run(name, func(t *testing.T) { client(t, address) })
	}
}

func goClient(t *testing.T, address string) {
	t.Helper()
	dir := t.TempDir()
	copyFiles(t, "golang", dir, "buf.gen.yaml", "go.mod", "go.sum", "main.go")
	path := filepath.Dir(tool(t, "protoc-gen-go")) + string(os.PathListSeparator) + filepath.Dir(tool(t, "protoc-gen-go-grpc"))
	generate(t, dir, "PATH="+path+string(os.PathListSeparator)+os.Getenv("PATH"))
	program := filepath.Join(dir, "client")
	run(t, dir, []string{"GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0"}, "go", "build", "-o", program, ".")
	answers(t, run(t, dir, nil, program, address))
}

func typeScript(t *testing.T, address string) {
	t.Helper()
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			missing(t, name, "Node 18.14.1 or later with npm (Debian packages nodejs and npm)")
		}
	}
	dir := t.TempDir()
	copyFiles(t, "typescript", dir, "buf.gen.yaml", "package.json", "tsconfig.json", "src/client.ts")
	if err := os.Symlink(nodeModules(t), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	generate(t, dir)
	// The compiler checks types and prints errors.
	run(t, dir, nil, "node", "node_modules/typescript/bin/tsc")
	answers(t, run(t, dir, nil, "node", "dist/src/client.js", address))
}

func python(t *testing.T, address string) {
	t.Helper()
	const packages = "the Debian packages protobuf-compiler, protobuf-compiler-grpc, python3-grpcio and python3-protobuf"
	for _, name := range []string{"protoc", "grpc_python_plugin"} {
		if _, err := exec.LookPath(name); err != nil {
			missing(t, name, packages)
		}
	}
	interpreter := pythonWithGRPC(t)
	if interpreter == "" {
		missing(t, "Python 3 with grpc", packages)
	}
	dir := t.TempDir()
	copyFiles(t, "python", dir, "buf.gen.yaml", "client.py")
	generate(t, dir)
	answers(t, run(t, dir, nil, interpreter, "client.py", address))
}

// pythonWithGRPC returns a Python with the libraries of clients; empty for none. The one in PATH
// may not have the Debian packages.
func pythonWithGRPC(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := exec.CommandContext(ctx, name, "-c", "import grpc, google.protobuf").Run()
		cancel()
		if err == nil {
			return name
		}
	}
	return ""
}

// missing ends a test that lacks a program. It fails the test if everything must be tested.
func missing(t *testing.T, name, remedy string) {
	t.Helper()
	message := "no " + name + " on this machine: install " + remedy
	if os.Getenv("CI") != "" {
		t.Fatal(message)
	}
	t.Skip(message)
}

// answers compares the output of a client with the content of the catalog.
func answers(t *testing.T, got string) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join("testdata", "want.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// grpcurl checks that reflection suffices for a general client.
func grpcurl(t *testing.T, address string) {
	t.Helper()
	program := tool(t, "grpcurl")
	services := strings.Fields(run(t, "", nil, program, "-plaintext", address, "list"))
	const extension = "chandlery.registry.v1.RegistryService"
	for _, name := range []string{"api.Registry", extension, "grpc.health.v1.Health"} {
		if !strings.Contains(strings.Join(services, "\n")+"\n", name+"\n") {
			t.Errorf("%s is not listed: %v", name, services)
		}
	}
	for _, tc := range []struct {
		method, request string
		want            []string
	}{
		{"GetInfo", "", []string{`"packages": 2`, `"entries": 4`, `"goVersion"`}},
		{"ListBundles", `{"packages": ["torch"]}`, []string{`"name": "torch.v0.1.0"`, `"isChannelHead": true`, `"value": "{\"packageName\":\"torch\"`}},
		{"SearchPackages", `{"query": "lamp"}`, []string{`"SEARCH_FIELD_NAME"`, `"totalSize": 1`}},
		{"GetUpgradeGraph", `{"package": "lamp", "channels": ["stable"]}`, []string{`"replaces": "lamp.v1.0.0"`}},
		{"ListDeprecations", "{}", []string{`"kind": "DEPRECATED_KIND_BUNDLE"`}},
	} {
		arguments := []string{"-plaintext", "-d", tc.request, address, extension + "/" + tc.method}
		got := run(t, "", nil, program, arguments...)
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s does not answer with %s:\n%s", tc.method, want, got)
			}
		}
	}
}

// serve runs our registry with the sample catalog until the test ends and
// returns its address.
func serve(t *testing.T) string {
	t.Helper()
	address := programs.Serve(t, programs.Registry(t), filepath.Join("testdata", "catalog"))
	waitServing(t, address)
	return address
}

func waitServing(t *testing.T, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
	for err == nil {
		var state *healthpb.HealthCheckResponse
		if state, err = stream.Recv(); state.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			return
		}
	}
	t.Fatalf("waiting for the registry: %v", err)
}

// source returns the path of a file in the checkout.
func source(t *testing.T, rel string) string {
	t.Helper()
	path, err := buildcache.SourceDir(rel)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// tools are the paths of the tools requested so far.
var tools = map[string]string{}

// tool returns the path of a pinned development tool. It builds the tool if necessary.
func tool(t *testing.T, name string) string {
	t.Helper()
	if tools[name] == "" {
		tools[name] = findTool(t, name)
	}
	return tools[name]
}

func findTool(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(run(t, source(t, "."), nil, "go", "tool", "-modfile=tools/go.mod", "-n", name))
}

// generate generates the client's code with buf, in a folder with a buf.gen.yaml.
func generate(t *testing.T, dir string, env ...string) {
	t.Helper()
	run(t, dir, env, tool(t, "buf"), "generate", source(t, "proto"))
}

// run runs a command and returns what it prints.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.WaitDelay = 5 * time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// copyFiles copies files from one folder to another.
func copyFiles(t *testing.T, from, to string, names ...string) {
	t.Helper()
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(from, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
