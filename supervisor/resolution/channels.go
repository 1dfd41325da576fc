package resolution

import (
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/supervisor/api"
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
	names := make([]string, 0, len(pkg.Channels))
	for _, channel := range pkg.Channels {
		names = append(names, channel.Name)
	}
	return nil, unsatisfiable(sub, api.ReasonChannelNotFound, "set spec.channel to one of "+joinNames(names),
		"no operators found in channel %s of package %s in the catalog referenced by subscription %s", sub.Channel, sub.Package, sub.Name)
}

func isDefault(c *content.Channel) bool { return c.Name == c.Package.DefaultChannel }

// orderProblem returns an error if the channel of a Subscription, or else the default channel, has no order.
func orderProblem(sub *Subscription, channels []*content.Channel) error {
	if len(channels) == 0 || channels[0].Err == nil {
		return nil
	}
	return unsatisfiable(sub, api.ReasonConstraintsNotSatisfiable, "ask the publisher of the catalog to fix it, or set spec.channel to another channel", "%v", channels[0].Err)
}

// noneFound returns the error for a Subscription for which the channels have no version.
func noneFound(sub *Subscription, pkg *content.Package, channels []*content.Channel) error {
	if err := orderProblem(sub, channels); err != nil && sub.StartingCSV == "" {
		return err
	}
	entries := 0
	for _, channel := range channels {
		entries += len(channel.Entries)
	}
	if sub.StartingCSV != "" && entries > 0 {
		return unsatisfiable(sub, api.ReasonStartingVersionNotFound, fmt.Sprintf("set spec.startingCSV to an entry of the channel or remove it; the channel has %d entries", entries),
			"no operators found with name %s in channel %s of package %s in the catalog referenced by subscription %s",
			sub.StartingCSV, channelName(sub, pkg), sub.Package, sub.Name)
	}
	return unsatisfiable(sub, api.ReasonChannelNotFound, "the catalog lists no version there; ask its publisher, or set spec.channel to another channel",
		"no operators found in channel %s of package %s in the catalog referenced by subscription %s", channelName(sub, pkg), sub.Package, sub.Name)
}

func channelName(sub *Subscription, pkg *content.Package) string {
	if sub.Channel != "" {
		return sub.Channel
	}
	return pkg.DefaultChannel
}
