package images

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const modulePath = "github.com/chandlery/chandlery"

// program is a program that has an image.
type program struct {
	// name is the name of the program, of the image, and of the folder in cmd/.
	name, title, description string
	// command are the default arguments of a container.
	command []string
	// ports are the default ports of the program.
	ports []string
	// links are additional paths of the program.
	links []string
}

// programs returns the programs that have an image, in display order.
func programs() []program {
	return []program{
		{
			name: "registry", title: "Chandlery registry",
			description: "Serves a catalog of operators over gRPC",
			command:     []string{"serve", "/configs"},
			ports:       []string{"50051/tcp", "9090/tcp"},
			// Catalog images that were built for opm use these names; OLM probes them with the second one.
			links: []string{"bin/opm", "bin/grpc_health_probe"},
		},
		{
			name: "supervisor", title: "Chandlery supervisor",
			description: "Keeps the operators of a cluster installed and up to date",
			command:     []string{"run"},
			ports:       []string{"8080/tcp", "8081/tcp"},
		},
	}
}

// plugin is the kubectl plugin, which has no image.
func plugin() program {
	return program{name: Plugin, title: "Chandlery's kubectl plugin", description: "Shows, installs and removes the operators of a cluster"}
}

// Plugin is the name of the kubectl plugin's program.
const Plugin = "kubectl-chandlery"

// BuildPlugin builds the kubectl plugin for a platform, and returns the program and its SBOM, SPDX 2.3 as JSON.
func (o Options) BuildPlugin(ctx context.Context, platform v1.Platform) (body, sbom []byte, err error) {
	compiled, err := o.compile(ctx, Plugin, platform)
	if err != nil {
		return nil, nil, err
	}
	sbom, err = o.sbomText(plugin(), platform, compiled)
	return compiled.body, sbom, err
}

// binary is a compiled program.
type binary struct {
	body []byte
	info *debug.BuildInfo
}

// compile builds a program for a platform.
func (o Options) compile(ctx context.Context, name string, platform v1.Platform) (binary, error) {
	dir, err := os.MkdirTemp("", "chandlery-image-")
	if err != nil {
		return binary{}, fmt.Errorf("making a folder to build in: %w", err)
	}
	compiled, err := o.compileIn(ctx, dir, name, platform)
	return compiled, errors.Join(err, os.RemoveAll(dir))
}

func (o Options) compileIn(ctx context.Context, dir, name string, platform v1.Platform) (binary, error) {
	file := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", fmt.Sprintf("-s -w -X main.version=%s -X main.commit=%s", o.Version, o.Commit),
		"-o", file, modulePath+"/cmd/"+name)
	cmd.Dir = o.Dir
	// Settings of the user for other builds must not affect the result.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off",
		"GOOS="+platform.OS, "GOARCH="+platform.Architecture, "GOAMD64=v1", "GOARM64=v8.0")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return binary{}, fmt.Errorf("building %s for %s: %w\n%s", name, platform, err, strings.TrimSpace(output.String()))
	}
	body, err := os.ReadFile(file)
	if err != nil {
		return binary{}, fmt.Errorf("reading what was built: %w", err)
	}
	info, err := buildinfo.Read(bytes.NewReader(body))
	if err != nil {
		return binary{}, fmt.Errorf("reading which modules %s was built from: %w", name, err)
	}
	return binary{body: body, info: info}, nil
}
