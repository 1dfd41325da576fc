package main

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// apiPage describes the services and messages of the contract that existing clients use, from its
// comments.
func apiPage(ctx context.Context) (string, error) {
	return contractPage(ctx, apiText, "registry.proto")
}

// extensionPage describes the calls that our registry adds to the contract.
func extensionPage(ctx context.Context) (string, error) {
	const folder = "chandlery/registry/v1/"
	return contractPage(ctx, extensionText, folder+"registry_service.proto", folder+"catalog.proto", folder+"content.proto")
}

// contractPage describes the services and messages of files, in the order of paths.
func contractPage(ctx context.Context, begin string, paths ...string) (string, error) {
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
	page := &apiWriter{}
	page.WriteString(begin)
	for _, path := range paths {
		if err := page.file(files, path); err != nil {
			return "", err
		}
	}
	return page.String(), nil
}

// apiText and extensionText are the introductions of the pages.
const (
	apiText = `# API of the registry

The gRPC API of the registry, from ` + "`proto/registry.proto`" + `: the contract of every catalog image. Calls that
only our registry answers are in [its own API](api-chandlery.md). [Clients](../clients.md) explains how to
write a client. The server also has reflection and answers ` + "`grpc.health.v1.Health`" + `.

`
	extensionText = `# The registry's own API

The calls that our registry answers in addition to [api.Registry](api.md): watches of content, pages,
search, graphs and deprecations, from ` + "`proto/chandlery/registry/v1`" + `. A server that has only api.Registry
answers ` + "`Unimplemented`" + `.

`
)

type apiWriter struct {
	strings.Builder

	// current is the package that is being described.
	current protoreflect.FullName
}

// file describes a contract: its services, then its messages.
func (w *apiWriter) file(files *protoregistry.Files, path string) error {
	file, err := files.FindFileByPath(path)
	if err != nil {
		return fmt.Errorf("looking for %s: %w", path, err)
	}
	if w.current != file.Package() {
		w.current = file.Package()
		fmt.Fprintf(w, "## %s\n\n%s\n\n", file.Package(), comment(file.SourceLocations().ByPath(protoreflect.SourcePath{syntaxField}).LeadingComments, file))
	}
	for i := range file.Services().Len() {
		w.service(file.Services().Get(i))
	}
	for i := range file.Messages().Len() {
		w.message(file.Messages().Get(i))
	}
	for i := range file.Enums().Len() {
		w.enum(file.Enums().Get(i))
	}
	return nil
}

// syntaxField is the number of the field of a file descriptor that holds the comments above
// "syntax".
const syntaxField = 12

// comment returns the comment above a descriptor as Markdown, or a note that there is none.
func comment(text string, of protoreflect.Descriptor) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return "(" + string(of.FullName()) + " is described nowhere.)"
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

func (w *apiWriter) message(m protoreflect.MessageDescriptor) {
	fmt.Fprintf(w, "### %s\n\n%s\n\n", m.FullName(), leading(m))
	if m.Fields().Len() == 0 {
		w.WriteString("It has no fields.\n\n")
		return
	}
	w.WriteString("| Field | No. | Type | |\n|---|---|---|---|\n")
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		fmt.Fprintf(w, "| `%s` | %d | %s | %s |\n", f.Name(), f.Number(), w.kind(f), inCell(leading(f)))
	}
	w.WriteString("\n")
	for i := range m.Enums().Len() {
		w.enum(m.Enums().Get(i))
	}
	for i := range m.Messages().Len() {
		if nested := m.Messages().Get(i); !nested.IsMapEntry() {
			w.message(nested)
		}
	}
}

func (w *apiWriter) enum(e protoreflect.EnumDescriptor) {
	fmt.Fprintf(w, "### %s\n\n%s\n\n| Value | No. | |\n|---|---|---|\n", e.FullName(), leading(e))
	for i := range e.Values().Len() {
		v := e.Values().Get(i)
		fmt.Fprintf(w, "| `%s` | %d | %s |\n", v.Name(), v.Number(), inCell(leading(v)))
	}
	w.WriteString("\n")
}

// kind returns the type of a field, with a link if this page describes the type.
func (w *apiWriter) kind(f protoreflect.FieldDescriptor) string {
	many := ""
	if f.IsList() {
		many = "repeated "
	}
	switch {
	case f.IsMap():
		return fmt.Sprintf("map of %#q to %#q", f.MapKey().Kind(), f.MapValue().Kind())
	case f.Message() != nil:
		return many + w.link(f.Message())
	case f.Enum() != nil:
		return many + w.link(f.Enum())
	default:
		return many + "`" + f.Kind().String() + "`"
	}
}

func (w *apiWriter) link(d protoreflect.Descriptor) string {
	if d.ParentFile().Package() != w.current {
		return "`" + string(d.FullName()) + "`"
	}
	anchor := strings.ReplaceAll(strings.ToLower(string(d.FullName())), ".", "")
	return fmt.Sprintf("[%#q](#%s)", d.Name(), anchor)
}

// inCell escapes a text for a table cell.
func inCell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
