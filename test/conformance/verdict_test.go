package conformance

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/server/source"
	"github.com/chandlery/chandlery/test/oracle"
)

// good is a valid package that cases add to.
var good = pkg("good", "a") + channel("good", "a", `{"name":"good.v1"}`) + bundle("good", "good.v1", "1.0.0")

// withBundle returns a package with one bundle in JSON.
func withBundle(text string) string {
	return pkg("p", "a") + channel("p", "a", `{"name":"b"}`) + text
}

// withEntries returns a package with bundles b1 to b4 and one channel.
func withEntries(entries string) string {
	return pkg("p", "a") + channel("p", "a", entries) + bundle("p", "b1", "1.0.0") + bundle("p", "b2", "2.0.0")
}

const noEntries = `{"schema":"olm.channel","package":"p","name":"a"}`

func TestVerdict(t *testing.T) {
	cases := map[string]struct {
		content files
		// differs is the reason why our verdict differs from declcfg's.
		differs string
	}{
		"Good":         {content: files{"f": good}},
		"Odd":          {content: oddCatalog},
		"NoFiles":      {content: files{".indexignore": ""}, differs: "decision 3: an empty directory is not served"},
		"OnlyCustom":   {content: files{"f": `{"schema":"x"}`}, differs: "decision 3: an empty directory is not served"},
		"CustomSchema": {content: files{"f": good + `{"schema":"my/schema"}`}},
		"NotYAML":      {content: files{"f": good, "README": "a: b: c"}},
		"PlainText":    {content: files{"f": good, "README.md": "hello"}},
		"NoSchema":     {content: files{"f": good + `{"name":"x"}`}},
		"CommentFile":  {content: files{"f": good, "g": "# comment\n"}},
		"BlankFile":    {content: files{"f": good, "g": "\n"}},
		"EmptyFile":    {content: files{"f": good, "g": ""}},
		"BrokenJSON":   {content: files{"f": good + `{"schema":`}},
		"Array":        {content: files{"f": good, "g": `[{"schema":"x"}]`}},
		"Scalar":       {content: files{"f": good, "g": "3"}},

		"LeftOver":           {content: files{"f": "schema: s\n...\nschema: t\n", "g": good}, differs: "decision 3: the second document would be lost"},
		"LeftOverJSON":       {content: files{"f": "# c\n{\"schema\":\"s\"}\n{\"schema\":\"t\"}\n", "g": good}, differs: "decision 3: the second object would be lost"},
		"EndMarker":          {content: files{"f": "schema: s\n...\n---\nschema: t\n", "g": good}},
		"MarkedStream":       {content: files{"f": "\ufeff" + good}, differs: "decision 3: opm drops all but the first object"},
		"NotUTF8JSON":        {content: files{"f": "{\"schema\":\"s\",\"x\":\"\xff\"}", "g": good}, differs: "decision 3: it is no text"},
		"NUL":                {content: files{"f": "\x00", "g": good}},
		"TrailingComma":      {content: files{"f": `{"schema":"x","name":"a",}`, "g": good}},
		"TrailingCommaThird": {content: files{"f": good + `{"schema":"x","name":"a",}`}},
		"OneJSONThenYAML":    {content: files{"f": `{"schema":"x"}` + "\n---\nschema: s\n", "g": good}},
		"TwoJSONThenYAML":    {content: files{"f": `{"schema":"x"}{"schema":"x"}` + "\n---\nschema: s\n", "g": good}},
		"LeadingSeparator":   {content: files{"f": "---\nschema: s\n", "g": good}},
		"TwoLeading":         {content: files{"f": "---\n---\nschema: s\n", "g": good}},
		"TrailingSeparator":  {content: files{"f": "schema: s\n---\n", "g": good}},
		"TrailingBlank":      {content: files{"f": "schema: s\n---\n\n", "g": good}},
		"TwoTrailing":        {content: files{"f": "schema: s\n---\n---\n", "g": good}},
		"SeparatorComment":   {content: files{"f": "schema: s\n--- # c\nschema: z\n", "g": good}},
		"SeparatorText":      {content: files{"f": "schema: s\n--- schema: z\n", "g": good}},
		"SeparatorFour":      {content: files{"f": "schema: s\n----\nschema: z\n", "g": good}},
		"EmptyDocument":      {content: files{"f": "schema: s\n---\n# nothing\n---\nschema: z\n", "g": good}},
		"ByteOrderMark":      {content: files{"f": "\ufeffschema: s\n", "g": "\ufeff" + `{"schema":"z"}`, "h": good}},
		"CarriageReturns":    {content: files{"f": "schema: s\r\n---\r\nschema: z\r\n", "g": good}},
		"Anchors":            {content: files{"f": "schema: &s t\nname: *s\n", "g": good}},
		"DuplicateKeysYAML":  {content: files{"f": "schema: s\nschema: z\n", "g": good}},
		"DuplicateFolded":    {content: files{"f": "schema: s\nSchema: z\n", "g": good}},
		"DuplicateOther":     {content: files{"f": "schema: s\nfoo: z\nFOO: 1\n", "g": good}},
		"SchemaNumber":       {content: files{"f": "schema: 1\n", "g": good}},
		"PackageNull":        {content: files{"f": "schema: s\npackage: null\n", "g": good}},
		"BooleanName":        {content: files{"f": "schema: s\nname: on\n", "g": good}},
		"IgnoredByDirectory": {content: files{"f": good, "d/.indexignore": "x\n", "d/x": "["}},
		"NotIgnoredOutside":  {content: files{"f": good, "d/.indexignore": "x\n", "x": "["}},
		"Tab":                {content: files{"f": good, "g": "\tschema: s\n"}},

		"NoPackageName":     {content: files{"f": good + pkg("", "a") + channel("", "a", `{"name":"b"}`) + `{"schema":"olm.bundle","name":"b","image":"i","properties":[{"type":"olm.package","value":{"version":"1.0.0"}}]}`}},
		"DuplicatePackage":  {content: files{"f": good, "g": pkg("good", "a")}},
		"PackageUpperCase":  {content: files{"f": pkg("P", "a") + channel("P", "a", `{"name":"b"}`) + `{"schema":"olm.bundle","package":"P","name":"b","image":"i","properties":[{"type":"olm.package","value":{"packageName":"P","version":"1.0.0"}}]}`}},
		"PackageDot":        {content: files{"f": pkg("p.q", "a") + channel("p.q", "a", `{"name":"b"}`) + bundle("p.q", "b", "1.0.0")}},
		"NoDefaultChannel":  {content: files{"f": pkg("p", "") + channel("p", "a", `{"name":"b"}`) + bundle("p", "b", "1.0.0")}},
		"UnknownDefault":    {content: files{"f": pkg("p", "z") + channel("p", "a", `{"name":"b"}`) + bundle("p", "b", "1.0.0")}},
		"NoChannels":        {content: files{"f": good + pkg("p", "a")}},
		"BadIcon":           {content: files{"f": `{"schema":"olm.package","name":"p","defaultChannel":"a","icon":{"base64data":"%"}}` + channel("p", "a", `{"name":"b"}`) + bundle("p", "b", "1.0.0")}},
		"PackageProperties": {content: files{"f": `{"schema":"olm.package","name":"p","defaultChannel":"a","properties":{}}` + channel("p", "a", `{"name":"b"}`) + bundle("p", "b", "1.0.0")}},
		"StrayChannel":      {content: files{"f": good + channel("p", "a", "")}},
		"StrayBundle":       {content: files{"f": good + bundle("p", "b", "1.0.0")}},
		"BundleNoPackage":   {content: files{"f": good + bundle("", "b", "1.0.0")}},
		"ChannelNoName":     {content: files{"f": good + channel("good", "", `{"name":"good.v1"}`)}},
		"DuplicateChannel":  {content: files{"f": good + channel("good", "a", `{"name":"good.v1"}`)}},
		"EmptyChannel":      {content: files{"f": pkg("p", "a") + noEntries}},
		"OddChannelName":    {content: files{"f": good + channel("good", " /?\n", `{"name":"good.v1"}`)}},
		"DuplicateEntry":    {content: files{"f": pkg("p", "a") + channel("p", "a", `{"name":"c","replaces":"b"},{"name":"b"},{"name":"b"}`) + bundle("p", "b", "1.0.0") + bundle("p", "c", "2.0.0")}},
		"EntryNoBundle":     {content: files{"f": pkg("p", "a") + channel("p", "a", `{"name":"b"},{"name":"c","replaces":"b"}`) + bundle("p", "b", "1.0.0")}},
		"EntryNoName":       {content: files{"f": withEntries(`{"name":"b1"},{"name":"b2","replaces":"b1"},{}`)}},
		"SkipEmpty":         {content: files{"f": withEntries(`{"name":"b1"},{"name":"b2","replaces":"b1","skips":[""]}`)}},
		"SkipRangeBad":      {content: files{"f": withEntries(`{"name":"b1"},{"name":"b2","replaces":"b1","skipRange":"x"}`)}},
		"SkipRangeGood":     {content: files{"f": withEntries(`{"name":"b1"},{"name":"b2","replaces":"b1","skipRange":"<2.0.0 || >3.0.0 !4.0.0"}`)}},
		"SkipRangeBlank":    {content: files{"f": withEntries(`{"name":"b1"},{"name":"b2","replaces":"b1","skipRange":" "}`)}},
		"TwoHeads":          {content: files{"f": withEntries(`{"name":"b1"},{"name":"b2"}`)}},
		"NoHead":            {content: files{"f": withEntries(`{"name":"b1","replaces":"b2"},{"name":"b2","replaces":"b1"}`)}},
		"SelfReplace":       {content: files{"f": withEntries(`{"name":"b1","replaces":"b1"},{"name":"b2"}`)}},
		"SelfSkip":          {content: files{"f": withEntries(`{"name":"b1"},{"name":"b2","replaces":"b1","skips":["b2"]}`)}},
		"SkipOnly":          {content: files{"f": withEntries(`{"name":"b1"},{"name":"b2","skips":["b1"]}`)}},
		"ReplacesMissing":   {content: files{"f": withEntries(`{"name":"b1","replaces":"b0"},{"name":"b2","replaces":"b1"}`)}},
		"Cycle": {content: files{"f": pkg("p", "a") + channel("p", "a", `{"name":"b3","replaces":"b2"},{"name":"b2","replaces":"b1"},{"name":"b1","replaces":"b2"}`) +
			bundle("p", "b1", "1.0.0") + bundle("p", "b2", "2.0.0") + bundle("p", "b3", "3.0.0")}},
		"Stranded": {content: files{"f": pkg("p", "a") + channel("p", "a", `{"name":"b3","skips":["b2"],"replaces":"b2"},{"name":"b2","replaces":"b1"},{"name":"b1"}`) +
			bundle("p", "b1", "1.0.0") + bundle("p", "b2", "2.0.0") + bundle("p", "b3", "3.0.0")}},

		"DuplicateBundle":   {content: files{"f": good + bundle("good", "good.v1", "1.0.0")}},
		"BundleNoChannel":   {content: files{"f": good + bundle("good", "good.v2", "2.0.0")}},
		"NoPackageProperty": {content: files{"f": withBundle(`{"schema":"olm.bundle","package":"p","name":"b","image":"i"}`)}},
		"TwoPackageProperties": {content: files{"f": withBundle(bundle("p", "b", "1.0.0",
			`{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}`))}},
		"OtherPackageProperty": {content: files{"f": withBundle(`{"schema":"olm.bundle","package":"p","name":"b","image":"i","properties":[{"type":"olm.package","value":{"packageName":"q","version":"1.0.0"}}]}`)}},
		"VersionV":             {content: files{"f": withBundle(bundle("p", "b", "v1.0.0"))}},
		"VersionShort":         {content: files{"f": withBundle(bundle("p", "b", "1.0"))}},
		"VersionBuild":         {content: files{"f": withBundle(bundle("p", "b", "1.0.0+x"))}},
		"SameVersion":          {content: files{"f": pkg("p", "a") + channel("p", "a", `{"name":"b1"},{"name":"b2","replaces":"b1"}`) + bundle("p", "b1", "1.0.0") + bundle("p", "b2", "1.0.0")}},
		"SameVersionBuild":     {content: files{"f": pkg("p", "a") + channel("p", "a", `{"name":"b1"},{"name":"b2","replaces":"b1"}`) + bundle("p", "b1", "1.0.0+1") + bundle("p", "b2", "1.0.0+2")}},
		"PropertyNoValue":      {content: files{"f": withBundle(bundle("p", "b", "1.0.0", `{"type":"x"}`))}},
		"PropertyNoType":       {content: files{"f": withBundle(bundle("p", "b", "1.0.0", `{"value":1}`))}},
		"PropertyNull":         {content: files{"f": withBundle(bundle("p", "b", "1.0.0", `{"type":"x","value":null}`))}},
		"GVKString":            {content: files{"f": withBundle(bundle("p", "b", "1.0.0", `{"type":"olm.gvk","value":"x"}`))}},
		"ChannelPriority":      {content: files{"f": withBundle(bundle("p", "b", "1.0.0", `{"type":"olm.channel","value":{"channelName":"x","priority":"1"}}`))}},
		"BadObjectBase64":      {content: files{"f": withBundle(bundle("p", "b", "1.0.0", `{"type":"olm.bundle.object","value":{"data":"%%"}}`))}},
		"BadObjectYAML":        {content: files{"f": withBundle(bundle("p", "b", "1.0.0", object("a: b: c")))}},
		"ObjectBrokenJSON":     {content: files{"f": withBundle(bundle("p", "b", "1.0.0", object(`{"a":`)))}},
		"ObjectEmpty":          {content: files{"f": withBundle(bundle("p", "b", "1.0.0", object("")))}},
		"ObjectNotUTF8":        {content: files{"f": withBundle(bundle("p", "b", "1.0.0", object("{\"a\":\"\xff\"}")))}, differs: "decision 3: a manifest that is not UTF-8 cannot be sent"},
		"TwoCSVMetadata": {content: files{"f": withBundle(bundle("p", "b", "1.0.0",
			`{"type":"olm.csv.metadata","value":{}}`, `{"type":"olm.csv.metadata","value":{}}`))}, differs: "decision 3: opm serve refuses it as well"},
		"CSVMetadataShape": {content: files{"f": withBundle(bundle("p", "b", "1.0.0", `{"type":"olm.csv.metadata","value":{"keywords":"x"}}`))}},
		"NoImage":          {content: files{"f": withBundle(`{"schema":"olm.bundle","package":"p","name":"b","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}`)}},
		"ImageUpperCase":   {content: files{"f": withBundle(`{"schema":"olm.bundle","package":"p","name":"b","image":"Foo/Bar","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}`)}},
		"ImageScheme":      {content: files{"f": withBundle(`{"schema":"olm.bundle","package":"p","name":"b","image":"oci://a/b","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}`)}},
		"ImageShort":       {content: files{"f": withBundle(`{"schema":"olm.bundle","package":"p","name":"b","image":"busybox","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}`)}},
		"ImageHex":         {content: files{"f": withBundle(`{"schema":"olm.bundle","package":"p","name":"b","image":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}`)}},
		"RelatedImage":     {content: files{"f": withBundle(`{"schema":"olm.bundle","package":"p","name":"b","image":"i","relatedImages":[{"name":"x","image":"a@"}],"properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}`)}},
		"ReleaseWrongName": {content: files{"f": withBundle(`{"schema":"olm.bundle","package":"p","name":"b","image":"i","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0","release":"1"}}]}`)}},
		"ReleaseBuild":     {content: files{"f": pkg("p", "a") + channel("p", "a", `{"name":"p-v1.0.0+x-1"}`) + `{"schema":"olm.bundle","package":"p","name":"p-v1.0.0+x-1","image":"i","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0+x","release":"1"}}]}`}},
		"ReleaseBad":       {content: files{"f": withBundle(`{"schema":"olm.bundle","package":"p","name":"b","image":"i","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0","release":"01"}}]}`)}},

		"DeprecationStray":     {content: files{"f": good + `{"schema":"olm.deprecations","package":"x"}`}},
		"DeprecationNoPackage": {content: files{"f": good + `{"schema":"olm.deprecations"}`}},
		"DeprecationTwice":     {content: files{"f": good + `{"schema":"olm.deprecations","package":"good"}{"schema":"olm.deprecations","package":"good"}`}},
		"DeprecationNoMessage": {content: files{"f": good + `{"schema":"olm.deprecations","package":"good","entries":[{"reference":{"schema":"olm.package"}}]}`}},
		"DeprecationRepeated":  {content: files{"f": good + `{"schema":"olm.deprecations","package":"good","entries":[{"reference":{"schema":"olm.package"},"message":"m"},{"reference":{"schema":"olm.package"},"message":"m"}]}`}},
		"DeprecationName":      {content: files{"f": good + `{"schema":"olm.deprecations","package":"good","entries":[{"reference":{"schema":"olm.package","name":"good"},"message":"m"}]}`}},
		"DeprecationChannel":   {content: files{"f": good + `{"schema":"olm.deprecations","package":"good","entries":[{"reference":{"schema":"olm.channel","name":"x"},"message":"m"}]}`}},
		"DeprecationBundle":    {content: files{"f": good + `{"schema":"olm.deprecations","package":"good","entries":[{"reference":{"schema":"olm.bundle","name":"x"},"message":"m"}]}`}},
		"DeprecationSchema":    {content: files{"f": good + `{"schema":"olm.deprecations","package":"good","entries":[{"reference":{"schema":"x"},"message":"m"}]}`}},
		"DeprecationGood":      {content: files{"f": good + `{"schema":"olm.deprecations","package":"good","entries":[{"reference":{"schema":"olm.bundle","name":"good.v1"},"message":"m"}]}`}},
	}
	judge, err := oracle.BuildJudge(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(cases))
	dirs := make([]string, len(names))
	for i, name := range names {
		dirs[i] = writeFiles(t, cases[name].content)
	}
	theirs, err := oracle.Judge(t.Context(), judge, dirs)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			_, ours := source.Dir{Path: dirs[i]}.Load(t.Context())
			checkFaults(t, bundles.AsProblems(ours), faults[name])
			same := (ours == nil) == (theirs[i].Error == "")
			if same != (tc.differs == "") {
				t.Errorf("ours: %v\ntheirs: %s\nexpected difference: %q", ours, theirs[i].Error, tc.differs)
			}
		})
	}
}

// checkFaults checks that our problems are exactly the expected ones.
func checkFaults(t *testing.T, problems bundles.Problems, want []string) {
	t.Helper()
	if len(problems) != len(want) {
		t.Errorf("got %d problems, want %d:\n%v", len(problems), len(want), problems)
		return
	}
	for i, p := range problems {
		if line := p.String(); !strings.Contains(line, want[i]) {
			t.Errorf("got problem %q, want %q", line, want[i])
		}
	}
}
