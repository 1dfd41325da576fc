package content

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

// setChain sorts the entries, removes duplicates, and computes the chain.
func (c *Channel) setChain() {
	slices.SortStableFunc(c.Entries, func(x, y *Entry) int { return strings.Compare(x.Bundle.Name, y.Bundle.Name) })
	c.Entries = slices.Clip(slices.CompactFunc(c.Entries, func(x, y *Entry) bool { return x.Bundle == y.Bundle }))
	for _, entry := range c.Entries {
		entry.Position = -1
	}
	c.Chain, c.Err = c.chain()
	for i, entry := range c.Chain {
		entry.Position = i
	}
}

// superseded holds the names that the entries of a channel replace or skip.
type superseded struct {
	replaced, skipped map[string]bool
}

func (c *Channel) superseded() superseded {
	p := superseded{replaced: map[string]bool{}, skipped: map[string]bool{}}
	for _, entry := range c.Entries {
		if entry.Replaces != "" {
			p.replaced[entry.Replaces] = true
		}
		for _, name := range entry.Skips {
			p.skipped[name] = true
		}
	}
	return p
}

// chain returns the entries from the head downwards along "replaces".
func (c *Channel) chain() ([]*Entry, error) {
	superseded := c.superseded()
	var heads []*Entry
	for _, entry := range c.Entries {
		if !superseded.replaced[entry.Bundle.Name] && !superseded.skipped[entry.Bundle.Name] {
			heads = append(heads, entry)
		}
	}
	if len(heads) == 0 {
		return nil, errors.New(olmtext.NoChannelHead(c.quotedNames()))
	}
	chains := make([][]*Entry, len(heads))
	for i, head := range heads {
		chain, ok := c.follow(head, superseded.skipped)
		if !ok {
			name, pkg := c.quotedNames()
			return nil, errors.New(olmtext.ChannelCycle(bundles.Quote(head.Bundle.Name), name, pkg))
		}
		chains[i] = chain
	}
	if len(chains) > 1 {
		name, pkg := c.quotedNames()
		return nil, errors.New(olmtext.SeveralChains(len(chains), name, pkg, describeChains(chains)))
	}
	return slices.Clip(chains[0]), nil
}

// quotedNames returns the names of the channel and of its package for messages.
func (c *Channel) quotedNames() (channel, pkg string) {
	return bundles.Quote(c.Name), bundles.Quote(c.Package.Name)
}

// follow returns head and the entries below it, without skipped ones. It stops at a name that is
// not in the channel. It returns false for a cycle.
func (c *Channel) follow(head *Entry, skipped map[string]bool) ([]*Entry, bool) {
	var chain []*Entry
	entry := head
	for range c.Entries {
		if !skipped[entry.Bundle.Name] {
			chain = append(chain, entry)
		}
		next := c.Entry(entry.Replaces)
		if next == nil || entry.Replaces == "" {
			return chain, true
		}
		entry = next
	}
	return nil, false
}

// describeChains lists the first and the last entry of at most five chains.
func describeChains(chains [][]*Entry) string {
	const most = 5
	var names []string
	for _, chain := range chains[:min(most, len(chains))] {
		name := printable(chain[0].Bundle.Name)
		if len(chain) > 1 {
			name += "..." + printable(chain[len(chain)-1].Bundle.Name)
		}
		names = append(names, name)
	}
	if len(chains) > most {
		names = append(names, fmt.Sprintf("and %d more", len(chains)-most))
	}
	return strings.Join(names, ", ")
}

// printable returns a name unchanged if it is printable and short, and quoted otherwise.
func printable(name string) string {
	if quoted := bundles.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}
