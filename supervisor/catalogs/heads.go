package catalogs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

// ErrBrokenChannel is returned for a channel whose head the catalog cannot send. Other channels can be read.
var ErrBrokenChannel = errors.New("the head of the channel cannot be read")

// ErrOtherHead is returned for a channel whose head is not the one that the catalog listed. The content has changed, or the
// catalog contradicts itself.
var ErrOtherHead = errors.New("the head of the channel is not the one that the catalog listed")

// HeadReader reads the heads of channels from one replica of a catalog.
type HeadReader struct{ client api.RegistryClient }

// ReadHeads calls read with a reader of heads. It calls read again with another replica if a replica fails.
func (s *Store) ReadHeads(ctx context.Context, catalog types.NamespacedName, read func(context.Context, HeadReader) error) error {
	found := s.followed.find(catalog)
	if found == nil {
		return fmt.Errorf("reading the heads of channels: %w for catalogsource %s", ErrNotConnected, catalog)
	}
	return found.set.Do(ctx, func(ctx context.Context, conn replicas.Conn) error {
		return read(ctx, HeadReader{client: api.NewRegistryClient(conn)})
	})
}

// SetBrokenChannels records the channels of a snapshot whose heads cannot be used, as PACKAGE/CHANNEL. It has no effect
// if the catalog has another snapshot now.
func (s *Store) SetBrokenChannels(catalog types.NamespacedName, snapshot *Snapshot, channels []string) {
	if found := s.followed.find(catalog); found != nil && found.tracker.setBrokenChannels(snapshot, slices.Sorted(slices.Values(channels))) {
		s.publisher.publish(s.ctx, catalog)
	}
}

// CSV returns the ClusterServiceVersion of the head of a channel, in JSON. The head must have a name, unless the name
// is empty.
func (r HeadReader) CSV(ctx context.Context, pkg, channel, name string) (string, error) {
	calling, cancel := context.WithTimeout(ctx, bundleTimeout)
	defer cancel()
	//nolint:staticcheck // deprecated, and what every server and client uses
	head, err := r.client.GetBundleForChannel(calling, &api.GetBundleInChannelRequest{PkgName: pkg, ChannelName: channel})
	switch {
	case err != nil && (calling.Err() != nil || replicas.IsReplicaFailure(err)):
		return "", fmt.Errorf("reading the head of channel %s of package %s: %w", channel, pkg, err)
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrBrokenChannel, err)
	case name != "" && head.GetCsvName() != name:
		return "", fmt.Errorf("reading the head of channel %s of package %s: %w", channel, pkg, ErrOtherHead)
	}
	return head.GetCsvJson(), nil
}
