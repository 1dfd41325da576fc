package resolution

import (
	"slices"

	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// channelsOf returns the channels of a Subscription: the one that it names, or all, the default one first.
func channelsOf(sub *Subscription, pkg *content.Package) ([]*content.Channel, error) {
	if sub.Channel == "" {
		channels := slices.Clone(pkg.Channels)
		slices.SortStableFunc(channels, func(a, b *content.Channel) int { return trueFirst(isDefault(a), isDefault(b)) })
		return channels, nil
	}
	if channel := pkg.Channel(sub.Channel); channel != nil {
		return []*content.Channel{channel}, nil
	}
	return nil, channelNotFound(sub, pkg)
}

func isDefault(c *content.Channel) bool { return c.Name == c.Package.DefaultChannel }

// channelName returns the name of the channel of a Subscription, or else of the default channel.
func channelName(sub *Subscription, pkg *content.Package) string {
	if sub.Channel != "" {
		return sub.Channel
	}
	return pkg.DefaultChannel
}
