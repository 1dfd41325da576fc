// Command pkgclient makes every call of operator-registry's client library to a catalog server, for
// everything that the server lists. It writes a line of JSON for each answer. Two servers of one
// catalog must produce the same lines.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/operator-framework/operator-registry/pkg/client"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// answer is the result of a call.
type answer struct {
	Call string `json:"call"`
	// Digest is a digest of the reply's fields; empty if there is no reply.
	Digest string `json:"digest,omitempty"`
	// Name is the bundle or package in the reply.
	Name string `json:"name,omitempty"`
	// Code and Message are those of an error.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

func main() {
	apis := flag.Int("apis", 20, "how many provided APIs to ask about")
	flag.Parse()
	if err := run(context.Background(), flag.Arg(0), *apis, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pkgclient:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, address string, apis int, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	c, err := client.NewClient(address)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	buffered := bufio.NewWriter(out)
	a := asker{client: c, out: json.NewEncoder(buffered), apis: apis}
	if err := errors.Join(a.all(ctx), c.Close(), buffered.Flush()); err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	return nil
}

// asker makes calls and writes the answers.
type asker struct {
	client client.Interface
	out    *json.Encoder
	apis   int
}

// all calls every method of the interface.
func (a asker) all(ctx context.Context) error {
	healthy, err := a.client.HealthCheck(ctx, time.Second)
	if err := a.out.Encode(map[string]any{"call": "HealthCheck", "healthy": healthy, "failed": err != nil}); err != nil {
		return err
	}
	bundles, err := a.list(ctx)
	if err != nil {
		return err
	}
	return errors.Join(a.packages(ctx, bundles), a.bundles(ctx, bundles), a.replacements(ctx, bundles), a.providers(ctx, bundles))
}

// list reads the iterator to its end.
func (a asker) list(ctx context.Context) ([]*api.Bundle, error) {
	iterator, err := a.client.ListBundles(ctx)
	if err != nil {
		return nil, err
	}
	var all []*api.Bundle
	for b := iterator.Next(); b != nil; b = iterator.Next() {
		all = append(all, b)
		if err := a.bundle("ListBundles", b, nil); err != nil {
			return nil, err
		}
	}
	return all, iterator.Error()
}

func (a asker) packages(ctx context.Context, bundles []*api.Bundle) error {
	names := []string{"", "no-such-package"}
	for _, b := range bundles {
		names = append(names, b.GetPackageName())
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		p, err := a.client.GetPackage(ctx, name)
		if err := a.write(fmt.Sprintf("GetPackage %q", name), p, p.GetName(), err); err != nil {
			return err
		}
	}
	return nil
}

func (a asker) bundles(ctx context.Context, bundles []*api.Bundle) error {
	type channel struct{ pkg, name string }
	seen := map[channel]bool{}
	for _, b := range bundles {
		for _, name := range []string{b.GetCsvName(), "no-such-bundle"} {
			got, err := a.client.GetBundle(ctx, b.GetPackageName(), b.GetChannelName(), name)
			call := fmt.Sprintf("GetBundle %q %q %q", b.GetPackageName(), b.GetChannelName(), name)
			if err := a.bundle(call, got, err); err != nil {
				return err
			}
		}
		at := channel{b.GetPackageName(), b.GetChannelName()}
		if seen[at] {
			continue
		}
		seen[at] = true
		for _, name := range []string{at.name, "no-such-channel"} {
			got, err := a.client.GetBundleInPackageChannel(ctx, at.pkg, name)
			if err := a.bundle(fmt.Sprintf("GetBundleInPackageChannel %q %q", at.pkg, name), got, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// replacements requests the replacement of each bundle, unless a server may choose among several.
func (a asker) replacements(ctx context.Context, bundles []*api.Bundle) error {
	type question struct{ name, pkg, channel string }
	answers := map[question]int{}
	var questions []question
	ask := func(name string, b *api.Bundle, answer int) {
		q := question{name, b.GetPackageName(), b.GetChannelName()}
		if _, known := answers[q]; !known {
			questions = append(questions, q)
		}
		answers[q] += answer
	}
	for _, b := range bundles {
		ask(b.GetCsvName(), b, 0)
		left := append(slices.Clone(b.GetSkips()), b.GetReplaces())
		slices.Sort(left)
		for _, name := range slices.Compact(left) {
			ask(name, b, 1)
		}
	}
	for _, q := range questions {
		if answers[q] > 1 {
			continue
		}
		got, err := a.client.GetReplacementBundleInPackageChannel(ctx, q.name, q.pkg, q.channel)
		call := fmt.Sprintf("GetReplacementBundleInPackageChannel %q %q %q", q.name, q.pkg, q.channel)
		if err := a.bundle(call, got, err); err != nil {
			return err
		}
	}
	return nil
}

func (a asker) providers(ctx context.Context, bundles []*api.Bundle) error {
	asked := []*api.GroupVersionKind{{Group: "no.such.group", Version: "v1", Kind: "Nothing"}}
	seen := map[string]bool{}
	for _, b := range bundles {
		for _, g := range b.GetProvidedApis() {
			if key := g.GetGroup() + "/" + g.GetVersion() + "/" + g.GetKind(); !seen[key] && len(asked) <= a.apis {
				seen[key] = true
				asked = append(asked, g)
			}
		}
	}
	for _, g := range asked {
		got, err := a.client.GetBundleThatProvides(ctx, g.GetGroup(), g.GetVersion(), g.GetKind())
		call := fmt.Sprintf("GetBundleThatProvides %q %q %q", g.GetGroup(), g.GetVersion(), g.GetKind())
		if err := a.bundle(call, got, err); err != nil {
			return err
		}
	}
	return nil
}

func (a asker) bundle(call string, b *api.Bundle, err error) error {
	return a.write(call, b, b.GetCsvName(), err)
}

func (a asker) write(call string, reply proto.Message, name string, failed error) error {
	if failed != nil {
		s := status.Convert(failed)
		return a.out.Encode(answer{Call: call, Code: s.Code().String(), Message: s.Message()})
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(reply)
	if err != nil {
		return fmt.Errorf("encoding the reply to %s: %w", call, err)
	}
	digest := sha256.Sum256(encoded)
	return a.out.Encode(answer{Call: call, Name: name, Digest: hex.EncodeToString(digest[:])})
}
