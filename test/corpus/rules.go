package corpus

import (
	"encoding/base64"
	"slices"
	"strings"
)

// rule changes a valid catalog to break one rule, or to obey it in an unusual way. It gets the
// objects of the minimal catalog: the package, its channel, and its bundles 1.0.0 and 1.1.0.
type rule struct {
	name   string
	mutate func(objects []object) []object
}

// rules returns a catalog for each rule and encoding.
func rules() []Catalog {
	var out []Catalog
	all := slices.Concat(packageRules(), channelRules(), graphRules(), bundleRules(),
		propertyRules(), imageRules(), deprecationRules(), envelopeRules())
	for _, r := range all {
		for _, e := range encodings() {
			out = append(out, Catalog{Name: "Rule/" + r.name + "/" + e.name, Files: e.encode(r.mutate(minimal()))})
		}
	}
	return out
}

// set returns a change that sets a field of the object at an index.
func set(at int, field string, value any) func([]object) []object {
	return func(objects []object) []object {
		objects[at][field] = value
		return objects
	}
}

// drop returns a change that removes a field of the object at an index.
func drop(at int, field string) func([]object) []object {
	return func(objects []object) []object {
		delete(objects[at], field)
		return objects
	}
}

// add returns a change that appends objects.
func add(more ...object) func([]object) []object {
	return func(objects []object) []object { return append(objects, more...) }
}

// remove returns a change that removes the object at an index.
func remove(at int) func([]object) []object {
	return func(objects []object) []object { return slices.Delete(objects, at, at+1) }
}

func packageRules() []rule {
	return []rule{
		{"PackageNoName", drop(0, "name")},
		{"PackageEmptyName", set(0, "name", "")},
		{"PackageOtherName", set(0, "name", "other")},
		{"PackageUpperCaseName", set(0, "name", "Alpha")},
		{"PackageNameNumber", set(0, "name", 1)},
		{"PackageTwice", add(pkg("alpha", "stable"))},
		{"PackageMissing", remove(0)},
		{"PackageWithoutContent", add(pkg("empty", "stable"))},
		{"PackageNoDefault", drop(0, "defaultChannel")},
		{"PackageEmptyDefault", set(0, "defaultChannel", "")},
		{"PackageUnknownDefault", set(0, "defaultChannel", "none")},
		{"PackageDefaultNumber", set(0, "defaultChannel", 7)},
		{"PackageDefaultOtherCase", set(0, "defaultChannel", "Stable")},
		{"PackageIconNull", set(0, "icon", nil)},
		{"PackageIconEmpty", set(0, "icon", object{})},
		{"PackageIconNotBase64", set(0, "icon", object{"base64data": "%%%", "mediatype": "image/png"})},
		{"PackageIconUnpadded", set(0, "icon", object{"base64data": "YWJjZA", "mediatype": "image/png"})},
		{"PackageIconUnknownType", set(0, "icon", object{"base64data": "YWJjZA==", "mediatype": "text/nothing"})},
		{"PackageIconNoType", set(0, "icon", object{"base64data": "YWJjZA=="})},
		{"PackageIconText", set(0, "icon", "YWJjZA==")},
		{"PackageDescriptionList", set(0, "description", []any{"a"})},
		{"PackageProperties", set(0, "properties", []any{object{"type": "a", "value": 1}})},
		{"PackagePropertiesObject", set(0, "properties", object{})},
		{"PackageUnknownField", set(0, "nothing", object{"a": 1})},
		{"PackageFieldOtherCase", func(o []object) []object {
			o[0]["DEFAULTCHANNEL"] = o[0]["defaultChannel"]
			delete(o[0], "defaultChannel")
			return o
		}},
	}
}

func channelRules() []rule {
	return []rule{
		{"ChannelNoName", drop(1, "name")},
		{"ChannelEmptyName", set(1, "name", "")},
		{"ChannelNoPackage", drop(1, "package")},
		{"ChannelOtherPackage", set(1, "package", "other")},
		{"ChannelPackageOtherCase", set(1, "package", "Alpha")},
		{"ChannelMissing", remove(1)},
		{"ChannelTwice", add(channel("alpha", "stable", object{"name": "alpha.v1.0.0"}))},
		{"ChannelSecond", add(channel("alpha", "second", object{"name": "alpha.v1.0.0"}))},
		{"ChannelOddName", add(channel("alpha", " /?\n\u2028", object{"name": "alpha.v1.0.0"}))},
		{"ChannelNoEntries", drop(1, "entries")},
		{"ChannelEntriesNull", set(1, "entries", nil)},
		{"ChannelEntriesEmpty", set(1, "entries", []any{})},
		{"ChannelEntriesObject", set(1, "entries", object{"name": "alpha.v1.0.0"})},
		{"ChannelEntriesText", set(1, "entries", []any{"alpha.v1.0.0"})},
		{"ChannelEntryNull", add(channel("alpha", "second", nil, object{"name": "alpha.v1.0.0"}))},
		{"ChannelEntryNoName", add(channel("alpha", "second", object{"name": "alpha.v1.0.0"}, object{}))},
		{"ChannelEntryTwice", add(channel("alpha", "second", object{"name": "alpha.v1.0.0"}, object{"name": "alpha.v1.0.0"}))},
		{"ChannelEntryUnknown", add(channel("alpha", "second", object{"name": "alpha.v9"}))},
		{"ChannelEntryUnknownReplaced", add(channel("alpha", "second", object{"name": "alpha.v1.0.0", "replaces": "alpha.v9"},
			object{"name": "alpha.v9"}))},
		{"ChannelEntryUnknownField", add(channel("alpha", "second", object{"name": "alpha.v1.0.0", "nothing": true}))},
		{"ChannelProperties", set(1, "properties", []any{object{"type": "a", "value": 1}})},
	}
}

// graph returns a change that sets the entries of the only channel.
func graph(entries ...any) func([]object) []object {
	return func(objects []object) []object {
		objects[1]["entries"] = entries
		return append(objects, bundle("alpha", "alpha.v1.2.0", "1.2.0"))
	}
}

func graphRules() []rule {
	const one, two, three = "alpha.v1.0.0", "alpha.v1.1.0", "alpha.v1.2.0"
	return []rule{
		{"GraphChain", graph(object{"name": one}, object{"name": two, "replaces": one}, object{"name": three, "replaces": two})},
		{"GraphTwoHeads", graph(object{"name": one}, object{"name": two, "replaces": one}, object{"name": three, "replaces": one})},
		{"GraphThreeHeads", graph(object{"name": one}, object{"name": two}, object{"name": three})},
		{"GraphNoHead", graph(object{"name": one, "replaces": three}, object{"name": two, "replaces": one}, object{"name": three, "replaces": two})},
		{"GraphCycleBelowHead", graph(object{"name": one, "replaces": two}, object{"name": two, "replaces": one}, object{"name": three, "replaces": two})},
		{"GraphReplacesItself", graph(object{"name": one, "replaces": one}, object{"name": two, "replaces": one}, object{"name": three, "replaces": two})},
		{"GraphHeadReplacesItself", graph(object{"name": one}, object{"name": two, "replaces": one}, object{"name": three, "replaces": three})},
		{"GraphHeadSkipsItself", graph(object{"name": one}, object{"name": two, "replaces": one},
			object{"name": three, "replaces": two, "skips": []any{three}})},
		{"GraphStranded", graph(object{"name": one, "replaces": two}, object{"name": two, "replaces": one}, object{"name": three})},
		{"GraphStrandedBelowSkipped", graph(object{"name": one}, object{"name": two, "replaces": one},
			object{"name": three, "replaces": two, "skips": []any{two}})},
		{"GraphSkipsAll", graph(object{"name": one}, object{"name": two}, object{"name": three, "skips": []any{one, two}})},
		{"GraphSkipsOfSkipped", graph(object{"name": one}, object{"name": two, "skips": []any{one}}, object{"name": three, "skips": []any{two}})},
		{"GraphSkipsEachOther", graph(object{"name": one, "skips": []any{two}}, object{"name": two, "skips": []any{one}}, object{"name": three})},
		{"GraphReplacesUnknown", graph(object{"name": one, "replaces": "alpha.v0"}, object{"name": two, "replaces": one},
			object{"name": three, "replaces": two})},
		{"GraphHeadReplacesUnknown", graph(object{"name": one}, object{"name": two, "replaces": one},
			object{"name": three, "replaces": "alpha.v0", "skips": []any{two}})},
		{"GraphSkipsUnknown", graph(object{"name": one}, object{"name": two, "replaces": one},
			object{"name": three, "replaces": two, "skips": []any{"alpha.v0"}})},
		{"GraphSkipsEmptyName", graph(object{"name": one}, object{"name": two, "replaces": one},
			object{"name": three, "replaces": two, "skips": []any{""}})},
		{"GraphSkipsTwice", graph(object{"name": one}, object{"name": two, "replaces": one},
			object{"name": three, "replaces": two, "skips": []any{one, one}})},
		{"GraphSkipsText", graph(object{"name": one}, object{"name": two, "replaces": one}, object{"name": three, "replaces": two, "skips": one})},
		{"GraphSkipsNull", graph(object{"name": one}, object{"name": two, "replaces": one}, object{"name": three, "replaces": two, "skips": nil})},
		{"GraphSkipsNumber", graph(object{"name": one}, object{"name": two, "replaces": one}, object{"name": three, "replaces": two, "skips": []any{1}})},
		{"GraphReplacesNumber", graph(object{"name": one}, object{"name": two, "replaces": one}, object{"name": three, "replaces": 2})},
		{"GraphReplacesNull", graph(object{"name": one, "replaces": nil}, object{"name": two, "replaces": one}, object{"name": three, "replaces": two})},
		{"GraphRangeOnly", graph(object{"name": one}, object{"name": two}, object{"name": three, "skipRange": "<1.2.0"})},
		{"GraphRangeNotParsed", graph(object{"name": one}, object{"name": two, "replaces": one},
			object{"name": three, "replaces": two, "skipRange": "a b"})},
		{"GraphRangeEmpty", graph(object{"name": one}, object{"name": two, "replaces": one}, object{"name": three, "replaces": two, "skipRange": ""})},
		{"GraphRangeSpace", graph(object{"name": one}, object{"name": two, "replaces": one}, object{"name": three, "replaces": two, "skipRange": "  "})},
		{"GraphRangeCaret", graph(object{"name": one}, object{"name": two, "replaces": one},
			object{"name": three, "replaces": two, "skipRange": "^1.0.0"})},
		{"GraphRangeOr", graph(object{"name": one}, object{"name": two, "replaces": one},
			object{"name": three, "replaces": two, "skipRange": "<1.0.0 || >=1.1.0 !1.1.5"})},
		{"GraphRangeWildcard", graph(object{"name": one}, object{"name": two, "replaces": one},
			object{"name": three, "replaces": two, "skipRange": "1.x"})},
	}
}

func bundleRules() []rule {
	return []rule{
		{"BundleNoName", drop(2, "name")},
		{"BundleEmptyName", set(2, "name", "")},
		{"BundleOtherName", set(2, "name", "other")},
		{"BundleNoPackage", drop(2, "package")},
		{"BundleOtherPackage", set(2, "package", "other")},
		{"BundleMissing", remove(2)},
		{"BundleTwice", add(bundle("alpha", "alpha.v1.0.0", "1.0.0"))},
		{"BundleTwiceOtherVersion", add(bundle("alpha", "alpha.v1.0.0", "1.5.0"))},
		{"BundleNoChannel", add(bundle("alpha", "alpha.v3.0.0", "3.0.0"))},
		{"BundleNoProperties", drop(2, "properties")},
		{"BundlePropertiesNull", set(2, "properties", nil)},
		{"BundlePropertiesObject", set(2, "properties", object{})},
		{"BundlePropertyNull", properties(nil)},
		{"BundleNameList", set(2, "name", []any{"alpha.v1.0.0"})},
		{"VersionV", version("v1.0.0")},
		{"VersionTwoParts", version("1.0")},
		{"VersionLeadingZero", version("01.0.0")},
		{"VersionEmpty", version("")},
		{"VersionSpace", version(" 1.0.0")},
		{"VersionNumber", version(1)},
		{"VersionPrerelease", version("1.0.0-rc.1")},
		{"VersionPrereleaseZero", version("1.0.0-01")},
		{"VersionBuild", version("1.0.0+build")},
		{"VersionSame", version("1.1.0")},
		{"VersionSameButBuild", version("1.1.0+1")},
		{"VersionSameButPrerelease", version("1.1.0-1")},
		{"VersionHuge", version("99999999999999999999.0.0")},
		{"ReleaseNamed", release("alpha-v1.0.0-1", "1.0.0", "1")},
		{"ReleaseTwoParts", release("alpha-v1.0.0-1.rc", "1.0.0", "1.rc")},
		{"ReleaseOtherName", release("alpha.v1.0.0-1", "1.0.0", "1")},
		{"ReleaseEmptyPart", release("alpha-v1.0.0-1..2", "1.0.0", "1..2")},
		{"ReleaseLeadingZero", release("alpha-v1.0.0-01", "1.0.0", "01")},
		{"ReleaseTooLong", release("alpha-v1.0.0-"+strings.Repeat("a", 21), "1.0.0", strings.Repeat("a", 21))},
		{"ReleaseLongest", release("alpha-v1.0.0-"+strings.Repeat("a", 20), "1.0.0", strings.Repeat("a", 20))},
		{"ReleaseWithBuild", release("alpha-v1.0.0+1-1", "1.0.0+1", "1")},
		{"ReleaseWithPrerelease", release("alpha-v1.0.0-rc.1-1", "1.0.0-rc.1", "1")},
		{"ReleaseEmpty", release("alpha.v1.0.0", "1.0.0", "")},
		{"ReleaseNumber", release("alpha-v1.0.0-1", "1.0.0", 1)},
		{"ReleaseBadCharacter", release("alpha-v1.0.0-a_b", "1.0.0", "a_b")},
	}
}

// version returns a change that sets the version of the first bundle.
func version(version any) func([]object) []object {
	return set(2, "properties", []any{property("olm.package", object{"packageName": "alpha", "version": version})})
}

// release returns a change that sets name, version and release of the first bundle.
func release(name, version string, release any) func([]object) []object {
	return func(objects []object) []object {
		objects[1]["entries"] = []any{object{"name": name}, object{"name": "alpha.v1.1.0", "replaces": name}}
		objects[2]["name"] = name
		objects[2]["properties"] = []any{property("olm.package", object{"packageName": "alpha", "version": version, "release": release})}
		return objects
	}
}

// properties returns a change that adds properties to the first bundle.
func properties(more ...any) func([]object) []object {
	return func(objects []object) []object {
		have, _ := objects[2]["properties"].([]any)
		objects[2]["properties"] = append(have, more...)
		return objects
	}
}

func propertyRules() []rule {
	inlined := func(text string) any {
		return property("olm.bundle.object", object{"data": base64.StdEncoding.EncodeToString([]byte(text))})
	}
	noImage := func(mutate func([]object) []object) func([]object) []object {
		return func(objects []object) []object { return mutate(drop(2, "image")(objects)) }
	}
	return []rule{
		{"PropertyNoType", properties(object{"value": 1})},
		{"PropertyEmptyType", properties(property("", 1))},
		{"PropertyNoValue", properties(object{"type": "example"})},
		{"PropertyNullValue", properties(property("example", nil))},
		{"PropertyTypeNumber", properties(object{"type": 1, "value": 1})},
		{"PropertyText", properties("example")},
		{"PropertyTwice", properties(property("example", 1), property("example", 1))},
		{"PropertyFieldOtherCase", properties(object{"Type": "example", "VALUE": 1})},
		{"PackagePropertyTwice", properties(property("olm.package", object{"packageName": "alpha", "version": "1.0.0"}))},
		{"PackagePropertyOther", set(2, "properties", []any{property("olm.package", object{"packageName": "other", "version": "1.0.0"})})},
		{"PackagePropertyNoName", set(2, "properties", []any{property("olm.package", object{"version": "1.0.0"})})},
		{"PackagePropertyNoVersion", set(2, "properties", []any{property("olm.package", object{"packageName": "alpha"})})},
		{"PackagePropertyText", set(2, "properties", []any{property("olm.package", "alpha")})},
		{"PackagePropertyNull", set(2, "properties", []any{property("olm.package", nil)})},
		{"PackagePropertyList", set(2, "properties", []any{property("olm.package", []any{})})},
		{"GVKEmpty", properties(property("olm.gvk", object{}))},
		{"GVKText", properties(property("olm.gvk", "a/b/c"))},
		{"GVKNumber", properties(property("olm.gvk", object{"group": 1, "version": "v1", "kind": "A"}))},
		{"GVKNull", properties(property("olm.gvk", nil))},
		{"GVKTwice", properties(property("olm.gvk", object{"group": "g", "version": "v1", "kind": "A"}),
			property("olm.gvk", object{"group": "g", "version": "v1", "kind": "A"}))},
		{"GVKRequiredList", properties(property("olm.gvk.required", []any{}))},
		{"PackageRequiredEmpty", properties(property("olm.package.required", object{}))},
		{"PackageRequiredRange", properties(property("olm.package.required", object{"packageName": "x", "versionRange": "not a range"}))},
		{"PackageRequiredNumber", properties(property("olm.package.required", object{"packageName": 3}))},
		{"ChannelProperty", properties(property("olm.channel", object{"channelName": "stable", "priority": 1}))},
		{"ChannelPropertyPriorityText", properties(property("olm.channel", object{"channelName": "stable", "priority": "1"}))},
		{"ChannelPropertyPriorityFraction", properties(property("olm.channel", object{"channelName": "stable", "priority": 1.5}))},
		{"ConstraintAnything", properties(property("olm.constraint", []any{"a"}))},
		{"CSVMetadataEmpty", properties(property("olm.csv.metadata", object{}))},
		{"CSVMetadataText", properties(property("olm.csv.metadata", "a"))},
		{"CSVMetadataKeywords", properties(property("olm.csv.metadata", object{"keywords": "a"}))},
		{"CSVMetadataModes", properties(property("olm.csv.metadata", object{"installModes": []any{object{"type": "AllNamespaces", "supported": "yes"}}}))},
		{"CSVMetadataCRDs", properties(property("olm.csv.metadata", object{"crdDescriptions": object{"owned": object{}}}))},
		{"CSVMetadataPort", properties(property("olm.csv.metadata", object{"apiServiceDefinitions": object{"owned": []any{object{"containerPort": "x"}}}}))},
		{"CSVMetadataTwice", properties(property("olm.csv.metadata", object{}), property("olm.csv.metadata", object{}))},
		{"CSVMetadataNoImage", noImage(properties(property("olm.csv.metadata", object{})))},
		{"ObjectJSON", noImage(properties(inlined(`{"kind":"A","apiVersion":"v1"}`)))},
		{"ObjectYAML", noImage(properties(inlined("kind: A\napiVersion: v1\n")))},
		{"ObjectBroken", noImage(properties(inlined("{")))},
		{"ObjectEmpty", noImage(properties(inlined("")))},
		{"ObjectText", noImage(properties(inlined("hello")))},
		{"ObjectTwoDocuments", noImage(properties(inlined("kind: A\n---\nkind: B\n")))},
		{"ObjectNotUTF8", noImage(properties(inlined("{\"kind\":\"\xff\"}")))},
		{"ObjectNotBase64", noImage(properties(property("olm.bundle.object", object{"data": "%"})))},
		{"ObjectNoData", noImage(properties(property("olm.bundle.object", object{})))},
		{"ObjectReference", noImage(properties(property("olm.bundle.object", object{"ref": "file.yaml"})))},
		{"ObjectDataObject", noImage(properties(property("olm.bundle.object", object{"data": object{"kind": "A"}})))},
		{"ObjectWithImage", properties(inlined(`{"kind":"A"}`))},
	}
}

func imageRules() []rule {
	related := func(value any) func([]object) []object { return set(2, "relatedImages", value) }
	return []rule{
		{"ImageNone", drop(2, "image")},
		{"ImageEmpty", set(2, "image", "")},
		{"ImageNumber", set(2, "image", 1)},
		{"ImageShort", set(2, "image", "alpha")},
		{"ImageTag", set(2, "image", "example.org:5000/a/b:c")},
		{"ImageTagAndDigest", set(2, "image", "example.org/a:c@sha256:"+strings.Repeat("a", 64))},
		{"ImageShortDigest", set(2, "image", "example.org/a@sha256:abc")},
		{"ImageUpperCase", set(2, "image", "example.org/A")},
		{"ImageScheme", set(2, "image", "https://example.org/a")},
		{"ImageSpace", set(2, "image", "example.org/a b")},
		{"ImageSlashes", set(2, "image", "example.org//a")},
		{"ImageHexOnly", set(2, "image", strings.Repeat("a", 64))},
		{"RelatedNull", related(nil)},
		{"RelatedEmpty", related([]any{})},
		{"RelatedNoImage", related([]any{object{"name": "a"}})},
		{"RelatedNoName", related([]any{object{"image": "example.org/a"}})},
		{"RelatedBroken", related([]any{object{"name": "a", "image": "a@"}})},
		{"RelatedText", related([]any{"example.org/a"})},
		{"RelatedObject", related(object{})},
		{"RelatedTwice", related([]any{object{"name": "a", "image": "b"}, object{"name": "a", "image": "b"}})},
	}
}

func deprecationRules() []rule {
	deprecations := func(entries ...any) object {
		return object{"schema": "olm.deprecations", "package": "alpha", "entries": entries}
	}
	entry := func(schema, name, message any) object {
		reference := object{"schema": schema}
		if name != nil {
			reference["name"] = name
		}
		return object{"reference": reference, "message": message}
	}
	return []rule{
		{"DeprecatedPackage", add(deprecations(entry("olm.package", nil, "m")))},
		{"DeprecatedPackageEmptyName", add(deprecations(entry("olm.package", "", "m")))},
		{"DeprecatedPackageNamed", add(deprecations(entry("olm.package", "alpha", "m")))},
		{"DeprecatedChannel", add(deprecations(entry("olm.channel", "stable", "m")))},
		{"DeprecatedChannelUnknown", add(deprecations(entry("olm.channel", "none", "m")))},
		{"DeprecatedChannelNoName", add(deprecations(entry("olm.channel", nil, "m")))},
		{"DeprecatedBundle", add(deprecations(entry("olm.bundle", "alpha.v1.0.0", "m")))},
		{"DeprecatedBundleUnknown", add(deprecations(entry("olm.bundle", "none", "m")))},
		{"DeprecatedBundleNoName", add(deprecations(entry("olm.bundle", nil, "m")))},
		{"DeprecatedOtherSchema", add(deprecations(entry("olm.nothing", "a", "m")))},
		{"DeprecatedNoSchema", add(deprecations(entry("", "a", "m")))},
		{"DeprecatedSchemaCase", add(deprecations(entry("OLM.package", nil, "m")))},
		{"DeprecatedNoMessage", add(deprecations(entry("olm.package", nil, "")))},
		{"DeprecatedMessageNumber", add(deprecations(entry("olm.package", nil, 1)))},
		{"DeprecatedNoReference", add(deprecations(object{"message": "m"}))},
		{"DeprecatedReferenceText", add(deprecations(object{"reference": "olm.package", "message": "m"}))},
		{"DeprecatedTwiceInOne", add(deprecations(entry("olm.package", nil, "m"), entry("olm.package", nil, "n")))},
		{"DeprecatedBundleTwice", add(deprecations(entry("olm.bundle", "alpha.v1.0.0", "m"), entry("olm.bundle", "alpha.v1.0.0", "m")))},
		{"DeprecationsTwice", add(deprecations(entry("olm.package", nil, "m")), deprecations(entry("olm.channel", "stable", "m")))},
		{"DeprecationsEmpty", add(deprecations())},
		{"DeprecationsNoPackage", add(object{"schema": "olm.deprecations", "entries": []any{}})},
		{"DeprecationsUnknownPackage", add(object{"schema": "olm.deprecations", "package": "none", "entries": []any{}})},
		{"DeprecationsNamed", add(object{"schema": "olm.deprecations", "package": "alpha", "name": "x", "entries": []any{}})},
		{"DeprecationsEntriesObject", add(object{"schema": "olm.deprecations", "package": "alpha", "entries": object{}})},
	}
}

// envelopeRules returns rules about the fields that all objects have.
func envelopeRules() []rule {
	rename := func(at int, from, to string) func([]object) []object {
		return func(objects []object) []object {
			objects[at][to] = objects[at][from]
			delete(objects[at], from)
			return objects
		}
	}
	return []rule{
		{"SchemaNone", drop(2, "schema")},
		{"SchemaEmpty", set(2, "schema", "")},
		{"SchemaNumber", set(2, "schema", 1)},
		{"SchemaNull", set(2, "schema", nil)},
		{"SchemaOtherCase", set(0, "schema", "OLM.package")},
		{"SchemaUnknown", add(object{"schema": "olm.unknown", "package": "alpha"})},
		{"SchemaCustom", add(object{"schema": "example.org/v1"})},
		{"SchemaKeyOtherCase", rename(0, "schema", "SCHEMA")},
		{"NameKeyOtherCase", rename(0, "name", "Name")},
		{"PackageKeyOtherCase", rename(1, "package", "pAckage")},
		{"KeyFolded", rename(0, "schema", "\u017fchema")},
		{"KeyTwiceFolded", add(object{"schema": "x", "name": "a", "Name": "b"})},
		{"KeyTwiceFoldedSchema", add(object{"schema": "x", "SCHEMA": "x"})},
		{"CustomPackageUnknown", add(object{"schema": "x", "package": "none"})},
		{"CustomPackageNumber", add(object{"schema": "x", "package": 1})},
		{"CustomNameNull", add(object{"schema": "x", "name": nil})},
		{"CustomNameBoolean", add(object{"schema": "x", "name": true})},
		{"CustomTwice", add(object{"schema": "x", "name": "a"}, object{"schema": "x", "name": "a"})},
		{"EmptyObject", add(object{})},
		{"NoObjects", func([]object) []object { return nil }},
		{"BigNumbers", properties(property("example", []any{1e300, 12345678901234567890.0, 0.1, 1e-7}))},
		{"OddText", properties(property("example", object{"<&>": "\u2028\u0000\ufeff", "": "é", "tab\t": "line\r\n"}))},
		{"OddTruth", properties(property("example", []any{"yes", "on", "~", "null", "0x10", "1_000", "2001-01-01", "1e3", ".inf", "=", "<<"}))},
	}
}
