package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/cmd/internal/inspect"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// printer prints answers in a format.
type printer struct {
	out  io.Writer
	form string
}

// message prints a message of the extension in a machine-readable format.
func (p printer) message(m proto.Message) error {
	text, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding as %s: %w", p.form, err)
	}
	return inspect.PrintValue(p.out, p.form, rawJSON(string(text)))
}

// isStructured reports whether the format is machine-readable.
func (p printer) isStructured() bool { return p.form == "json" || p.form == "yaml" }

func (q *query) info(ctx context.Context, _ []string) error {
	reply, err := registryv1.NewRegistryServiceClient(q.conn).GetInfo(ctx, &registryv1.GetInfoRequest{})
	if err != nil {
		return err
	}
	if q.isStructured() {
		return q.message(reply)
	}
	content, build := reply.GetContent(), reply.GetBuild()
	w := tabwriter.NewWriter(q.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "Digest:\t%s\n", bundles.OneLine(content.GetDigest()))
	fmt.Fprintf(w, "Content:\t%s, %s, %s, %s\n", bundles.Count(int(content.GetPackages()), "package"), bundles.Count(int(content.GetChannels()), "channel"),
		bundles.Count(int(content.GetBundles()), "bundle"), bundles.Count(int(content.GetEntries()), "entry"))
	fmt.Fprintf(w, "Index:\t%d bytes, format %d\n", content.GetIndexBytes(), content.GetIndexFormat())
	if content.GetLoadedAt() != nil {
		fmt.Fprintf(w, "Loaded:\t%s\n", content.GetLoadedAt().AsTime().Format("2006-01-02 15:04:05 MST"))
	}
	fmt.Fprintf(w, "Server:\t%s (commit %s, %s, %s)\n",
		bundles.OneLine(build.GetVersion()), bundles.OneLine(build.GetCommit()), bundles.OneLine(build.GetGoVersion()), bundles.OneLine(build.GetPlatform()))
	if failure := reply.GetFailure(); failure != nil {
		fmt.Fprintf(w, "Not served:\tnewer content with %s\n", bundles.Count(int(failure.GetTotalProblems()), "problem"))
		for _, p := range failure.GetProblems() {
			fmt.Fprintf(w, "\t%s\n", bundles.OneLine(strings.TrimPrefix(p.GetFile()+": "+p.GetMessage()+"; "+p.GetRemedy(), ": ")))
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

func (q *query) search(ctx context.Context, args []string) error {
	reply, err := registryv1.NewRegistryServiceClient(q.conn).SearchPackages(ctx, &registryv1.SearchPackagesRequest{Query: strings.Join(args, " ")})
	if err != nil {
		return err
	}
	if q.isStructured() {
		return q.message(reply)
	}
	t := &table{columns: []string{"PACKAGE", "DISPLAY NAME", "PROVIDER", "VERSION", "DEPRECATED", "FOUND IN", "SCORE"}, wide: 5}
	for _, match := range reply.GetMatches() {
		p := match.GetPackage()
		var fields []string
		for _, field := range match.GetFields() {
			fields = append(fields, strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(field.String(), "SEARCH_FIELD_")), "_", " "))
		}
		t.add(p.GetName(), p.GetName(), p.GetDisplayName(), p.GetProvider(), p.GetVersion(), mark(p.GetDeprecation().GetMessage()),
			strings.Join(fields, ", "), strconv.Itoa(int(match.GetScore())))
	}
	if err := t.printAs(q.out, q.form); err != nil {
		return err
	}
	if more := int(reply.GetTotalSize()) - len(reply.GetMatches()); more > 0 && q.form != "name" {
		fmt.Fprintf(q.out, "%d more\n", more)
	}
	return nil
}

func (q *query) deprecations(ctx context.Context, args []string) error {
	client := registryv1.NewRegistryServiceClient(q.conn)
	request := &registryv1.ListDeprecationsRequest{Packages: args}
	all := &registryv1.ListDeprecationsResponse{}
	for {
		page, err := client.ListDeprecations(ctx, request)
		if err != nil {
			return err
		}
		all.Deprecations = append(all.Deprecations, page.GetDeprecations()...)
		all.ContentDigest = page.GetContentDigest()
		if page.GetNextPageToken() == "" {
			break
		}
		request.PageToken = page.GetNextPageToken()
	}
	if q.isStructured() {
		return q.message(all)
	}
	t := &table{columns: []string{"PACKAGE", "KIND", "NAME", "MESSAGE"}, wide: 4}
	for _, d := range all.GetDeprecations() {
		kind := strings.ToLower(strings.TrimPrefix(d.GetKind().String(), "DEPRECATED_KIND_"))
		t.add(strings.TrimSuffix(d.GetPackage()+"/"+d.GetName(), "/"), d.GetPackage(), kind, d.GetName(), d.GetMessage())
	}
	return t.printAs(q.out, q.form)
}
