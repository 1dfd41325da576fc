package main

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// apiPage describes the services of the contract that existing clients use, from its comments.
func apiPage(ctx context.Context) (string, error) {
	return contractPage(ctx, apiText, "registry.proto")
}

// extensionPage describes the calls that our registry adds to the contract.
func extensionPage(ctx context.Context) (string, error) {
	return contractPage(ctx, extensionText, "chandlery/registry/v1/registry_service.proto")
}

// contractPage describes the services of the file at path.
func contractPage(ctx context.Context, begin, path string) (string, error) {
	image, err := output(ctx, "tool", "-modfile=tools/go.mod", "buf", "build", "--as-file-descriptor-set", "-o", "-")
	if err != nil {
		return "", err
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(image, &set); err != nil {
		return "", fmt.Errorf("decoding what buf made: %w", err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return "", fmt.Errorf("reading what buf made: %w", err)
	}
	file, err := files.FindFileByPath(path)
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", path, err)
	}
	page := &apiWriter{}
	page.WriteString(begin)
	page.file(file)
	return page.String(), nil
}

// apiText and extensionText are the introductions of the pages.
const (
	apiText = `# API of the registry

The gRPC API of every catalog image. [registry.proto](../../proto/registry.proto) describes the messages. Calls that
only our registry answers are in [its own API](api-chandlery.md). The server also has reflection and answers
` + "`grpc.health.v1.Health`" + `. See [clients](../clients.md).

`
	extensionText = `# The registry's own API

The calls that our registry answers in addition to [api.Registry](api.md). The messages are described in
[registry_service.proto](../../proto/chandlery/registry/v1/registry_service.proto),
[catalog.proto](../../proto/chandlery/registry/v1/catalog.proto) and
[content.proto](../../proto/chandlery/registry/v1/content.proto).

`
)

type apiWriter struct{ strings.Builder }

// file describes a contract and its services.
func (w *apiWriter) file(file protoreflect.FileDescriptor) {
	about := file.SourceLocations().ByPath(protoreflect.SourcePath{syntaxField}).LeadingComments
	fmt.Fprintf(w, "## %s\n\n%s\n\n", file.Package(), comment(about, file))
	for i := range file.Services().Len() {
		w.service(file.Services().Get(i))
	}
}

// syntaxField is the number of the field of a file descriptor that holds the comments above
// "syntax".
const syntaxField = 12

// comment returns the comment above a descriptor as Markdown, or a note that there is none.
func comment(text string, of protoreflect.Descriptor) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return "(" + string(of.FullName()) + " has no description.)"
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func leading(d protoreflect.Descriptor) string {
	return comment(d.ParentFile().SourceLocations().ByDescriptor(d).LeadingComments, d)
}

func (w *apiWriter) service(s protoreflect.ServiceDescriptor) {
	fmt.Fprintf(w, "### %s\n\nService. %s\n", s.FullName(), leading(s))
	for i := range s.Methods().Len() {
		m := s.Methods().Get(i)
		fmt.Fprintf(w, "\n#### %s/%s\n\n`%s` → `%s%s`\n\n%s\n", s.FullName(), m.Name(),
			m.Input().Name(), stream(m.IsStreamingServer()), m.Output().Name(), leading(m))
	}
	w.WriteString("\n")
}

func stream(yes bool) string {
	if yes {
		return "stream "
	}
	return ""
}

// inCell escapes a text for a table cell.
func inCell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
