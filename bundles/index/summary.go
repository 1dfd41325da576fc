package index

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/chandlery/chandlery/bundles"
)

// Summary is a short description of a package. All facts about a bundle concern the head of the default channel.
type Summary struct {
	Package        string        `json:"-"`
	DefaultChannel string        `json:"-"`
	Head           string        `json:"head,omitempty"`
	Version        string        `json:"version,omitempty"`
	DisplayName    string        `json:"displayName,omitempty"`
	Description    string        `json:"description,omitempty"`
	Provider       string        `json:"provider,omitempty"`
	Keywords       []string      `json:"keywords,omitempty"`
	Categories     []string      `json:"categories,omitempty"`
	APIs           []bundles.GVK `json:"apis,omitempty"`
	// Channels are the names of all channels, in byte order.
	Channels []string `json:"-"`
	// Bundles counts the bundles of all channels, each once.
	Bundles int `json:"-"`
	// Deprecation is the message of the package's deprecation; empty for none.
	Deprecation string `json:"deprecation,omitempty"`
}

// summary encodes the fields of [Index.Summary] that are not in the tables.
func (e *encoder) summary(p *encodedPackage) ([]byte, error) {
	s := Summary{Description: e.pkg.Description, Deprecation: e.deprecated[bundles.Reference{Schema: bundles.SchemaPackage}]}
	for i := range p.channels {
		if ch := &p.channels[i]; ch.name == p.defaultChannel {
			head := ch.entries[ch.head].bundle
			s.Head, s.Version, s.APIs = head.name, head.version, head.provided
			s.describe(e.withoutIcon(head.csv))
			break
		}
	}
	out, err := encodeJSON(&s)
	if err != nil {
		return nil, fmt.Errorf("encoding summary: %w", err)
	}
	return out, nil
}

// withoutIcon returns a ClusterServiceVersion in one piece, without the icon, which is long and not needed.
func (e *encoder) withoutIcon(csv [][]byte) []byte {
	parts := slices.Clone(csv)
	for i, part := range parts {
		if at := firstByte(part); at != nil && at == firstByte(e.icon) {
			parts[i] = []byte("{}")
		}
	}
	return bytes.Join(parts, nil)
}

// describe reads the descriptive fields of a ClusterServiceVersion. It ignores fields of an unexpected form.
func (s *Summary) describe(csv []byte) {
	var in struct {
		Metadata struct {
			Annotations struct {
				Categories string `json:"categories"`
			} `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			DisplayName string          `json:"displayName"`
			Description string          `json:"description"`
			Keywords    []string        `json:"keywords"`
			Provider    bundles.AppLink `json:"provider"`
		} `json:"spec"`
	}
	if json.Unmarshal(csv, &in) != nil {
		return
	}
	s.DisplayName, s.Provider, s.Keywords = in.Spec.DisplayName, in.Spec.Provider.Name, in.Spec.Keywords
	if s.Description == "" {
		s.Description = in.Spec.Description
	}
	for category := range strings.SplitSeq(in.Metadata.Annotations.Categories, ",") {
		if category = strings.TrimSpace(category); category != "" {
			s.Categories = append(s.Categories, category)
		}
	}
}

// extensionQueries answers the queries of the extension API.
type extensionQueries struct{ rowFinder }

// Summaries returns the summaries of all packages, by name. It omits damaged ones; call
// [Index.Check] first to find damage.
func (q extensionQueries) Summaries() iter.Seq[Summary] {
	return func(yield func(Summary) bool) {
		for row := range uint32(q.tables[sectionPackages].len()) { //nolint:gosec // rows are counted in 32 bits
			s, err := q.summary(row)
			if err == nil && !yield(s) {
				return
			}
		}
	}
}

// Summary returns the summary of a package.
func (q extensionQueries) Summary(pkg string) (Summary, error) {
	row, ok := q.packageRow(pkg)
	if !ok {
		return Summary{}, notFound("package %q not found", pkg)
	}
	return q.summary(row)
}

func (q extensionQueries) summary(row uint32) (Summary, error) {
	packages, channels := q.tables[sectionPackages], q.tables[sectionChannels]
	message, err := q.message(packages.place(row, packageSummary))
	if err != nil {
		return Summary{}, err
	}
	var out Summary
	if err := json.Unmarshal(message.Bytes(), &out); err != nil {
		return Summary{}, fmt.Errorf("decoding summary: %w", err)
	}
	out.Package = strings.Clone(q.name(sectionPackages, row, packageName))
	out.Bundles = int(packages.rowsOf(row, packageBundles).count)
	if standard := packages.u32(row, packageDefaultChannel); standard != none {
		out.DefaultChannel = strings.Clone(q.name(sectionChannels, standard, channelName))
	}
	all := packages.rowsOf(row, packageChannels)
	for i := range all.count {
		if int(all.first+i) < channels.len() {
			out.Channels = append(out.Channels, strings.Clone(q.name(sectionChannels, all.first+i, channelName)))
		}
	}
	return out, nil
}

// Graph is the upgrade graph of a package.
type Graph struct {
	Package        string
	DefaultChannel string
	// Deprecation is the message of the package's deprecation; empty for none.
	Deprecation string
	// Channels are in byte order of their names.
	Channels []ChannelGraph
}

// ChannelGraph is the upgrade graph of one channel.
type ChannelGraph struct {
	Name        string
	Head        string
	Deprecation string
	// Entries are in byte order of their names.
	Entries []GraphEntry
}

// GraphEntry is a bundle in an upgrade graph.
type GraphEntry struct {
	Name        string
	Version     string
	Replaces    string
	Skips       []string
	SkipRange   string
	Deprecation string
	// Image is empty for a bundle with inline manifests.
	Image string
}

// Graph returns the upgrade graph of a package.
func (q extensionQueries) Graph(pkg string) (*Graph, error) {
	row, ok := q.packageRow(pkg)
	if !ok {
		return nil, notFound("package %q not found", pkg)
	}
	reply, err := q.message(q.tables[sectionPackages].place(row, packageReply))
	if err != nil {
		return nil, err
	}
	out, err := decodePackage(reply.Bytes())
	if err != nil {
		return nil, fmt.Errorf("decoding package %q: %w", pkg, err)
	}
	for i := range out.Channels {
		if out.Channels[i].Entries, err = q.graphEntries(pkg, out.Channels[i].Name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// decodePackage decodes an api.Package into a graph without entries.
func decodePackage(message []byte) (*Graph, error) {
	out := &Graph{}
	err := readFields(message, func(field protowire.Number, value []byte) (err error) {
		switch field {
		case packageFieldName:
			out.Package = string(value)
		case packageFieldDefaultChannel:
			out.DefaultChannel = string(value)
		case packageFieldDeprecation:
			out.Deprecation, err = readText(value, firstField)
		case packageFieldChannels:
			var ch ChannelGraph
			ch, err = decodeChannel(value)
			out.Channels = append(out.Channels, ch)
		default:
		}
		return err
	})
	return out, err
}

func decodeChannel(message []byte) (ChannelGraph, error) {
	var out ChannelGraph
	err := readFields(message, func(field protowire.Number, value []byte) (err error) {
		switch field {
		case channelFieldName:
			out.Name = string(value)
		case channelFieldCSVName:
			out.Head = string(value)
		case channelFieldDeprecation:
			out.Deprecation, err = readText(value, firstField)
		default:
		}
		return err
	})
	return out, err
}

func (q extensionQueries) graphEntries(pkg, channel string) ([]GraphEntry, error) {
	row, err := q.channelRow(pkg, channel)
	if err != nil {
		return nil, err
	}
	entries := q.tables[sectionChannels].rowsOf(row, channelEntries)
	out := make([]GraphEntry, 0, entries.count)
	for i := range entries.count {
		row := entries.first + i
		message, err := q.entry(row, q.tables[sectionEntries].place(row, entryMessage), false)
		if err != nil {
			return nil, err
		}
		entry, err := decodeEntry(message.Bytes())
		if err != nil {
			return nil, fmt.Errorf("decoding entry: %w", err)
		}
		out = append(out, entry)
	}
	return out, nil
}

// decodeEntry decodes an api.Bundle as an entry.
func decodeEntry(message []byte) (GraphEntry, error) {
	var out GraphEntry
	texts := map[protowire.Number]*string{
		bundleFieldCSVName: &out.Name, bundleFieldVersion: &out.Version, bundleFieldReplaces: &out.Replaces,
		bundleFieldSkipRange: &out.SkipRange, bundleFieldBundlePath: &out.Image,
	}
	err := readFields(message, func(field protowire.Number, value []byte) (err error) {
		switch field {
		case bundleFieldSkips:
			out.Skips = append(out.Skips, string(value))
		case bundleFieldDeprecation:
			out.Deprecation, err = readText(value, firstField)
		default:
			if to := texts[field]; to != nil {
				*to = string(value)
			}
		}
		return err
	})
	return out, err
}

// BundlesFrom returns the answers of [Index.Bundles], but in byte order of package, channel and
// bundle and always without manifests. It returns the bundles of some packages, or of all if none
// is named. It begins after the key of an earlier message; an empty key stands for the beginning.
func (q extensionQueries) BundlesFrom(after string, packages []string) iter.Seq2[string, Message] {
	return func(yield func(string, Message) bool) {
		entries := q.all(sectionEntries)
		first := firstRow(entries, func(row uint32) bool {
			_, key := q.entryKey(row)
			return key > after || after == ""
		})
		for row := first; row < entries.count; row++ {
			pkg, key := q.entryKey(row)
			if len(packages) > 0 && !slices.Contains(packages, pkg) {
				continue
			}
			message, err := q.entry(row, q.tables[sectionEntries].place(row, entryMessage), false)
			if err != nil || !yield(key, message) {
				return
			}
		}
	}
}

// keySeparator sorts before every continuation of a name. [keyEscape] ensures that names do not contain it.
const keySeparator = "\x00\x01"

var keyEscape = strings.NewReplacer("\x00", "\x00\xff")

// entryKey returns the package of an entry and a key for sorting entries.
func (q extensionQueries) entryKey(row uint32) (pkg, key string) {
	channel := q.tables[sectionEntries].u32(row, entryChannel)
	pkg = q.name(sectionPackages, q.tables[sectionChannels].u32(channel, channelPackage), packageName)
	names := []string{
		keyEscape.Replace(pkg), keyEscape.Replace(q.name(sectionChannels, channel, channelName)),
		keyEscape.Replace(q.name(sectionEntries, row, entryName)),
	}
	return pkg, strings.Join(names, keySeparator)
}
