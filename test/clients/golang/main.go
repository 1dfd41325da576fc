// Command client shows both contracts of a registry from Go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"example.com/client/gen/api"
	registryv1 "example.com/client/gen/chandlery/registry/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

func main() {
	address := "localhost:50051"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := errors.Join(frozen(ctx, api.NewRegistryClient(conn)), extension(ctx, registryv1.NewRegistryServiceClient(conn))); err != nil {
		log.Fatal(err)
	}
}

// frozen asks what every catalog answers.
func frozen(ctx context.Context, client api.RegistryClient) error {
	names, err := client.ListPackages(ctx, &api.ListPackageRequest{})
	if err != nil {
		return err
	}
	for {
		name, err := names.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p, err := client.GetPackage(ctx, &api.GetPackageRequest{Name: name.GetName()})
		if err != nil {
			return err
		}
		var heads []string
		for _, c := range p.GetChannels() {
			heads = append(heads, c.GetName()+"="+c.GetCsvName())
		}
		fmt.Println("package", p.GetName(), p.GetDefaultChannelName(), strings.Join(heads, ","))
	}
}

// extension asks what a registry of ours answers beyond that.
func extension(ctx context.Context, client registryv1.RegistryServiceClient) error {
	info, err := client.GetInfo(ctx, &registryv1.GetInfoRequest{})
	if err != nil {
		return err
	}
	fmt.Println("content", info.GetContent().GetPackages(), "packages", info.GetContent().GetEntries(), "entries")

	request := &registryv1.ListBundlesRequest{PageSize: 2}
	for {
		page, err := client.ListBundles(ctx, request)
		if err != nil {
			return err
		}
		for _, b := range page.GetBundles() {
			head := "-"
			if b.GetIsChannelHead() {
				head = "head"
			}
			fmt.Println("bundle", b.GetPackage(), b.GetChannel(), b.GetName(), b.GetVersion(), head)
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			break
		}
	}

	found, err := client.SearchPackages(ctx, &registryv1.SearchPackagesRequest{Query: "LAMP light"})
	if err != nil {
		return err
	}
	for _, m := range found.GetMatches() {
		fmt.Println("found", m.GetPackage().GetName(), m.GetPackage().GetHead())
	}
	deprecations, err := client.ListDeprecations(ctx, &registryv1.ListDeprecationsRequest{})
	if err != nil {
		return err
	}
	for _, d := range deprecations.GetDeprecations() {
		fmt.Println("deprecated", d.GetPackage(), d.GetName(), d.GetMessage())
	}

	answer, err := client.GetUpgradeGraph(ctx, &registryv1.GetUpgradeGraphRequest{Package: "lamp"})
	if err != nil {
		return err
	}
	for _, channel := range answer.GetGraph().GetChannels() {
		for _, e := range channel.GetEntries() {
			replaces := e.GetReplaces()
			if replaces == "" {
				replaces = "nothing"
			}
			fmt.Println("edge", channel.GetName(), e.GetName(), "replaces", replaces)
		}
	}
	_, err = client.GetUpgradeGraph(ctx, &registryv1.GetUpgradeGraphRequest{Package: "candle"})
	fmt.Println("error", status.Code(err), status.Convert(err).Message())

	states, err := client.Watch(ctx, &registryv1.WatchRequest{})
	if err != nil {
		return err
	}
	state, err := states.Recv()
	if err != nil {
		return err
	}
	if state.GetContent().GetDigest() == info.GetContent().GetDigest() {
		fmt.Println("state unchanged")
	}
	return nil
}
