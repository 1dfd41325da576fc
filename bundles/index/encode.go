package index

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/bundles"
)

// encodedPackage is the contribution of one package to an index.
type encodedPackage struct {
	name           string
	defaultChannel string
	// listed, reply and summary are the answers of ListPackages, of GetPackage
	// and of [Index.Summary].
	listed, reply, summary []byte
	// bundles and channels are in byte order of their names.
	bundles  []*encodedBundle
	channels []encodedChannel
	digest   [32]byte
}

// encodedBundle holds what the entries of one bundle have in common.
type encodedBundle struct {
	name string
	// facts are the encoded fields that are equal in all channels, except names and manifests.
	facts    []byte
	payload  payload
	inline   bool
	provided []bundles.GVK
	version  string
	// csv is the ClusterServiceVersion as consecutive parts; empty for none.
	csv [][]byte
}

type encodedChannel struct {
	name    string
	head    int
	entries []encodedEntry
}

// encodedEntry is a bundle in one channel.
type encodedEntry struct {
	bundle *encodedBundle
	// message has the fields that depend on the channel: first the fields in the answers of all
	// RPCs, up to unary, then the position in the graph.
	message []byte
	unary   int
	// replaces and skips are the bundles that the entry upgrades. The first edge belongs to replaces.
	replaces string
	skips    []string
	// edges are the messages of the RPCs that stream channel entries: one for the replaced bundle
	// and one for each further skipped bundle. innerEdges omits skipped bundles that the channel
	// lacks; it is set for heads.
	edges, innerEdges [][]byte
}

// payload is the large part of a bundle, csvJson and object, as consecutive
// pieces of the encoded message.
type payload []piece

// piece is a part of a message. Several messages may share it.
type piece struct {
	bytes []byte
	// sum is the digest of a large piece; zero for a small one, which is cheaper to repeat.
	sum [32]byte
}

// sharedSize is the size from which pieces are stored once.
const sharedSize = 256

// encoder encodes one package.
type encoder struct {
	pkg        *bundles.Package
	deprecated map[bundles.Reference]string
	bundles    map[string]*encodedBundle
	icon       []byte
	// cut holds the pieces of known parts.
	cut map[pieceIdentity][]piece
}

// pieceIdentity identifies a slice by its address and length.
type pieceIdentity struct {
	first  *byte
	length int
}

var (
	errProperty = errors.New("expected exactly 1 property")
	errNoBundle = errors.New("there is no such bundle")
)

// encodePackage encodes a valid package; for another one it may fail. It changes the package.
func encodePackage(p *bundles.Package) (*encodedPackage, error) {
	e := &encoder{
		pkg: p, deprecated: deprecations(p), bundles: make(map[string]*encodedBundle, len(p.Bundles)),
		icon: iconJSON(p), cut: make(map[pieceIdentity][]piece),
	}
	out := &encodedPackage{name: p.Name, defaultChannel: p.DefaultChannel}
	for _, b := range p.Bundles {
		one, err := e.bundle(b)
		if err != nil {
			return nil, fmt.Errorf("bundle %q: %w", b.Name, err)
		}
		e.bundles[b.Name] = one
		out.bundles = append(out.bundles, one)
		// Release encoded fields before the whole package is encoded.
		b.Properties, b.RelatedImages = nil, nil
	}
	slices.SortFunc(out.bundles, func(a, b *encodedBundle) int { return cmp.Compare(a.name, b.name) })
	for _, ch := range p.Channels {
		one, err := e.channel(ch)
		if err != nil {
			return nil, fmt.Errorf("channel %q: %w", ch.Name, err)
		}
		out.channels = append(out.channels, one)
	}
	slices.SortFunc(out.channels, func(a, b encodedChannel) int { return cmp.Compare(a.name, b.name) })
	if err := e.replies(out); err != nil {
		return nil, err
	}
	out.digest = out.sum()
	return out, nil
}

// deprecations returns the messages of a package's deprecations.
func deprecations(p *bundles.Package) map[bundles.Reference]string {
	out := make(map[bundles.Reference]string)
	for _, list := range p.Deprecations {
		for _, d := range list.Entries {
			out[d.Reference] = d.Message
		}
	}
	return out
}

// deprecation returns the message for an object of the package; nil for none.
func (e *encoder) deprecation(schema, name string) *string {
	message, ok := e.deprecated[bundles.Reference{Schema: schema, Name: name}]
	if !ok {
		return nil
	}
	return &message
}

func (e *encoder) bundle(b *bundles.Bundle) (*encodedBundle, error) {
	facts, err := bundles.ParseCheckedProperties(b.Properties)
	if err != nil {
		return nil, fmt.Errorf("parsing properties: %w", err)
	}
	if len(facts.Packages) != 1 {
		return nil, fmt.Errorf("%w of type %q: found %d", errProperty, bundles.TypePackage, len(facts.Packages))
	}
	out := &encodedBundle{
		name: b.Name, inline: b.Image == "", provided: facts.GVKs, version: facts.Packages[0].Version,
	}
	if out.facts, err = bundleFacts(b, facts); err != nil {
		return nil, err
	}
	csv, objects, err := manifests(e.pkg, b, facts, e.icon)
	if err != nil {
		return nil, err
	}
	out.csv, out.payload = csv, e.payload(csv, objects)
	return out, nil
}

// payload returns the fields csvJson and object of a bundle, from texts in consecutive parts.
func (e *encoder) payload(csv [][]byte, objects [][][]byte) payload {
	var out payload
	add := func(field protowire.Number, text [][]byte) {
		length := 0
		for _, part := range text {
			length += len(part)
		}
		tag := protowire.AppendTag(nil, field, protowire.BytesType)
		out = append(out, piece{bytes: protowire.AppendVarint(tag, uint64(length))})
		for _, part := range text {
			out = append(out, e.pieces(part)...)
		}
	}
	if len(csv) > 0 {
		add(bundleFieldCSVJSON, csv)
	}
	for _, object := range objects {
		add(bundleFieldObject, object)
	}
	return out
}

// pieces cuts a part at long strings, which often stay the same between versions and can be shared.
func (e *encoder) pieces(part []byte) []piece {
	identity := pieceIdentity{first: firstByte(part), length: len(part)}
	if known, ok := e.cut[identity]; ok {
		return known
	}
	var out []piece
	begin := 0
	for i := nextString(part, 0); i >= 0; {
		end := stringEnd(part, i)
		if end-i >= longString {
			out = append(out, newPiece(part[begin:i]), newPiece(part[i:end]))
			begin = end
		}
		i = nextString(part, end)
	}
	out = append(out, newPiece(part[begin:]))
	e.cut[identity] = out
	return out
}

// firstByte returns the address of a text; nil for an empty one.
func firstByte(text []byte) *byte {
	if len(text) == 0 {
		return nil
	}
	return &text[0]
}

// longString is the size from which a string gets a piece of its own.
const longString = 2 << 10

// nextString returns the start of the next string; a negative number for none.
func nextString(text []byte, from int) int {
	i := bytes.IndexByte(text[from:], '"')
	if i < 0 {
		return i
	}
	return from + i
}

// stringEnd returns the end of a string in a text that is valid JSON.
func stringEnd(text []byte, begin int) int {
	for i := begin + 1; ; i++ {
		quote := bytes.IndexByte(text[i:], '"')
		if quote < 0 {
			return len(text)
		}
		i += quote
		escapes := 0
		for text[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

func newPiece(part []byte) piece {
	out := piece{bytes: part}
	if len(part) >= sharedSize {
		out.sum = sha256.Sum256(part)
	}
	return out
}

func (e *encoder) channel(ch *bundles.Channel) (encodedChannel, error) {
	out := encodedChannel{name: ch.Name}
	head, err := ch.Head()
	if err != nil {
		return out, fmt.Errorf("finding head: %w", err)
	}
	for i := range ch.Entries {
		entry, err := e.entry(ch, &ch.Entries[i])
		if err != nil {
			return out, fmt.Errorf("entry %q: %w", ch.Entries[i].Name, err)
		}
		out.entries = append(out.entries, entry)
	}
	slices.SortFunc(out.entries, func(a, b encodedEntry) int { return cmp.Compare(a.bundle.name, b.bundle.name) })
	inChannel := make(map[string]bool, len(out.entries))
	for i := range out.entries {
		inChannel[out.entries[i].bundle.name] = true
		if out.entries[i].bundle.name == head.Name {
			out.head = i
		}
	}
	for i := range out.entries {
		if err := out.entries[i].encodeEdges(e.pkg.Name, ch.Name, i == out.head, inChannel); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (e *encoder) entry(ch *bundles.Channel, in *bundles.Entry) (encodedEntry, error) {
	out := encodedEntry{bundle: e.bundles[in.Name], replaces: in.Replaces, skips: in.Skips}
	if out.bundle == nil {
		return out, errNoBundle
	}
	w := newWire(append([]string{in.Name, e.pkg.Name, ch.Name, in.SkipRange, in.Replaces}, in.Skips...)...)
	w.text(bundleFieldCSVName, in.Name)
	w.text(bundleFieldPackageName, e.pkg.Name)
	w.text(bundleFieldChannelName, ch.Name)
	w.text(bundleFieldSkipRange, in.SkipRange)
	w.deprecation(bundleFieldDeprecation, e.deprecation(bundles.SchemaBundle, in.Name))
	out.unary = len(w.out)
	// The position in the graph is a separate message after the first one.
	w.text(bundleFieldReplaces, in.Replaces)
	for _, skipped := range in.Skips {
		w.element(bundleFieldSkips, skipped)
	}
	var err error
	out.message, err = w.encoded("Bundle")
	return out, err
}

// encodeEdges fills edges and, for a head, innerEdges. An entry that skips
// what it replaces has one edge for both.
func (e *encodedEntry) encodeEdges(pkg, channel string, isHead bool, inChannel map[string]bool) error {
	add := func(replaces string, inner bool) error {
		w := newWire(pkg, channel, e.bundle.name, replaces)
		w.text(entryFieldPackageName, pkg)
		w.text(entryFieldChannelName, channel)
		w.text(entryFieldBundleName, e.bundle.name)
		w.text(entryFieldReplaces, replaces)
		edge, err := w.encoded("ChannelEntry")
		e.edges = append(e.edges, edge)
		if isHead && inner {
			e.innerEdges = append(e.innerEdges, edge)
		}
		return err
	}
	if err := add(e.replaces, true); err != nil {
		return err
	}
	for _, skipped := range e.skips {
		if skipped == e.replaces {
			continue
		}
		if err := add(skipped, inChannel[skipped]); err != nil {
			return err
		}
	}
	return nil
}

// replies encodes the answers about the package as a whole.
func (e *encoder) replies(out *encodedPackage) error {
	var reply, listed wire
	reply.text(packageFieldName, out.name)
	for i := range out.channels {
		if err := e.appendChannel(&reply, &out.channels[i]); err != nil {
			return err
		}
	}
	reply.text(packageFieldDefaultChannel, out.defaultChannel)
	reply.deprecation(packageFieldDeprecation, e.deprecation(bundles.SchemaPackage, ""))
	listed.text(firstField, out.name)
	var err error
	if out.reply, err = reply.encoded("Package"); err != nil {
		return err
	}
	if out.listed, err = listed.encoded("PackageName"); err != nil {
		return err
	}
	out.summary, err = e.summary(out)
	return err
}

// appendChannel appends a channel to an api.Package.
func (e *encoder) appendChannel(reply *wire, ch *encodedChannel) error {
	var w wire
	w.text(channelFieldName, ch.name)
	w.text(channelFieldCSVName, ch.entries[ch.head].bundle.name)
	w.deprecation(channelFieldDeprecation, e.deprecation(bundles.SchemaChannel, ch.name))
	channel, err := w.encoded("Channel")
	if err != nil {
		return err
	}
	reply.out = protowire.AppendTag(reply.out, packageFieldChannels, protowire.BytesType)
	reply.out = protowire.AppendBytes(reply.out, channel)
	return nil
}

// sum returns the digest of everything that the package contributes to answers.
func (p *encodedPackage) sum() [32]byte {
	h := sha256.New()
	writeCount(h, len(p.bundles))
	for _, b := range p.bundles {
		writeSized(h, []byte(b.name))
		writeSized(h, b.facts)
		writeCount(h, len(b.payload))
		for _, one := range b.payload {
			if one.sum != ([32]byte{}) {
				h.Write(one.sum[:])
				continue
			}
			writeSized(h, one.bytes)
		}
	}
	writeCount(h, len(p.channels))
	for i := range p.channels {
		writeCount(h, len(p.channels[i].entries))
		for j := range p.channels[i].entries {
			writeSized(h, p.channels[i].entries[j].message)
		}
	}
	writeSized(h, p.reply)
	writeSized(h, p.summary)
	return [32]byte(h.Sum(nil))
}

// writeSized writes the length of a part before the part, to separate parts.
func writeSized(h hash.Hash, part []byte) {
	writeCount(h, len(part))
	h.Write(part)
}

// writeCount writes the length of a list, or of a part in bytes.
func writeCount(h hash.Hash, n int) {
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(max(0, n))))
}

// marshalOptions make the encoding deterministic.
var marshalOptions = proto.MarshalOptions{Deterministic: true}

func marshal(m proto.Message) ([]byte, error) {
	out, err := marshalOptions.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return out, nil
}

// bundleFacts encodes the fields of a bundle that are equal in all its channels, except names,
// manifests and deprecation.
func bundleFacts(b *bundles.Bundle, facts *bundles.Facts) ([]byte, error) {
	var w wire
	w.out = make([]byte, 0, factsSize(b))
	w.text(bundleFieldBundlePath, b.Image)
	for _, gvk := range facts.GVKs {
		w.texts(bundleFieldProvidedAPIs, gvk.Group, gvk.Version, gvk.Kind)
	}
	for _, gvk := range facts.GVKsRequired {
		w.texts(bundleFieldRequiredAPIs, gvk.Group, gvk.Version, gvk.Kind)
	}
	w.text(bundleFieldVersion, facts.Packages[0].Version)
	if err := appendDependencies(&w, b, facts.PackagesRequired); err != nil {
		return nil, err
	}
	for _, p := range b.Properties {
		if isProperty(p.Type) {
			w.pair(bundleFieldProperties, p.Type, p.Value)
		}
	}
	return w.encoded("Bundle")
}

// isProperty reports whether clients see properties of a type. They do not see manifests: clients
// copy properties into annotations, whose size is limited.
func isProperty(kind string) bool {
	return kind != bundles.TypeBundleObject && kind != bundles.TypeCSVMetadata
}

// factsSize returns the approximate encoded size of a bundle's facts.
func factsSize(b *bundles.Bundle) int {
	const fixed, each = 256, 64
	size := fixed + len(b.Image)
	for _, p := range b.Properties {
		if isProperty(p.Type) {
			// Required and provided APIs are encoded twice.
			size += each + 2*len(p.Value)
		}
	}
	return size
}

// appendDependencies appends the requirements of a bundle, in the order of its properties.
func appendDependencies(w *wire, b *bundles.Bundle, required []bundles.PackageRequired) error {
	for _, p := range b.Properties {
		switch p.Type {
		case bundles.TypeGVKRequired:
			w.pair(bundleFieldDependencies, bundles.TypeGVK, p.Value)
		case bundles.TypePackageRequired:
			value, err := encodeJSON(bundles.PackageProperty{
				PackageName: required[0].PackageName, Version: required[0].VersionRange,
			})
			if err != nil {
				return err
			}
			required = required[1:]
			w.pair(bundleFieldDependencies, bundles.TypePackage, value)
		}
	}
	return nil
}
