package conformance

import (
	"bytes"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/chandlery/chandlery/proto/api"
)

// customCatalog has objects of custom schemas, in several packages, files and forms.
var customCatalog = files{
	"p/catalog.json": pkg("p", "stable") + channel("p", "stable", `{"name":"p.v1"}`) + bundle("p", "p.v1", "1.0.0") +
		`{"schema":"example.org.settings","package":"p","name":"one","list":[1,2.5,-3e10,true,null,"<&>"],"nested":{"b":{},"a":[]}}` + "\n" +
		`{"schema":"example.org.settings","package":"p","name":"two"}` + "\n" +
		`{"schema":"example.org.settings","package":"p","name":"twice"}` + "\n" +
		`{"schema":"example.org.settings","package":"p","name":"twice"}` + "\n" +
		`{"schema":"example.org.other","package":"p","text":"é \u2028 \ud83d\ude00"}`,
	"p/more.yaml": "schema: example.org.settings\npackage: p\nname: three\nnumber: 12345678901234567890\nyes: on\n",
	"global.yaml": "---\nschema: example.org.settings\nname: for-all\n---\nSchema: example.org.settings\nname: for-all-too\n",
	"lost.json":   `{"schema":"example.org.settings","package":"no-such-package","name":"lost"}`,
	"q/catalog.json": pkg("q", "stable") + channel("q", "stable", `{"name":"q.v1"}`) + bundle("q", "q.v1", "1.0.0") +
		`{"schema":"example.org.settings","package":"q","name":"one"}`,
}

// acknowledged is the metadata key that the experimental service requires.
const acknowledged = "x-acknowledge-experimental"

func TestExperimental(t *testing.T) {
	ours, theirs := startPeers(t, writeFiles(t, customCatalog))
	yes := []string{acknowledged, "true"}
	cases := map[string]struct {
		reason   string
		metadata []string
		schema   string
		pkg      string
		// want is the number of objects.
		want int
	}{
		"Package":         {reason: "objects of a package", metadata: yes, schema: "example.org.settings", pkg: "p", want: 5},
		"AnotherPackage":  {reason: "and of no other", metadata: yes, schema: "example.org.settings", pkg: "q", want: 1},
		"AnotherSchema":   {reason: "nor of another schema", metadata: yes, schema: "example.org.other", pkg: "p", want: 1},
		"NoPackage":       {reason: "objects without a package, not all objects", metadata: yes, schema: "example.org.settings", want: 2},
		"UnknownPackage":  {reason: "of a package that is only named", metadata: yes, schema: "example.org.settings", pkg: "no-such-package", want: 1},
		"Nobody":          {reason: "nothing is no error", metadata: yes, schema: "example.org.settings", pkg: "nobody"},
		"UnknownSchema":   {reason: "nothing is no error", metadata: yes, schema: "example.org.nothing", pkg: "p"},
		"CoreSchema":      {reason: "what the contract knows is not custom", metadata: yes, schema: "olm.package"},
		"CoreOfPackage":   {reason: "not in a package either", metadata: yes, schema: "olm.channel", pkg: "p"},
		"Deprecations":    {reason: "nor are deprecations", metadata: yes, schema: "olm.deprecations", pkg: "p"},
		"WithoutMetadata": {reason: "who does not ask for experiments gets none", schema: "example.org.settings", pkg: "p"},
		"OtherValue":      {reason: "only true counts", metadata: []string{acknowledged, "True"}, schema: "example.org.settings", pkg: "p"},
		"SecondValue":     {reason: "only the first value counts", metadata: []string{acknowledged, "false", acknowledged, "true"}, schema: "example.org.settings", pkg: "p"},
		"FirstValue":      {reason: "only the first value counts", metadata: []string{acknowledged, "true", acknowledged, "false"}, schema: "example.org.settings", pkg: "q", want: 1},
		"NoSchema":        {reason: "a schema has to be named", metadata: yes, pkg: "p"},
		"NoSchemaUnasked": {reason: "who does not ask for experiments gets no errors", pkg: "p"},
		"BadSchema":       {reason: "no path gets through", metadata: yes, schema: "../x", pkg: "p"},
		"BadPackage":      {reason: "no path gets through", metadata: yes, schema: "example.org.settings", pkg: "a/b"},
		"BothBad":         {reason: "one of them is named", metadata: yes, schema: "-", pkg: "-"},
		"LongSchema":      {reason: "names have no limit of their own", metadata: yes, schema: string(bytes.Repeat([]byte("s"), 300)), pkg: "p"},
		"Newline":         {reason: "the whole name counts", metadata: yes, schema: "example.org.settings\n", pkg: "p"},
		"NotASCII":        {reason: "only these characters count", metadata: yes, schema: "é", pkg: "p"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := &api.ExperimentalListPackageCustomSchemasRequest{Schema: tc.schema, PackageName: tc.pkg}
			got, gotErr := customSchemas(t, ours, request, tc.metadata)
			want, wantErr := customSchemas(t, theirs, request, tc.metadata)
			if diff := gocmp.Diff(statusText(wantErr), statusText(gotErr), protocmp.Transform()); diff != "" {
				t.Fatalf("%s: error -want +got:\n%s", tc.reason, diff)
			}
			again, _ := customSchemas(t, ours, request, tc.metadata)
			if diff := gocmp.Diff(got, again, protocmp.Transform()); diff != "" {
				t.Errorf("our order changes: -first +second:\n%s", diff)
			}
			// The peer returns objects in the order in which it has read the files.
			sortStructs(got)
			sortStructs(want)
			if diff := gocmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if len(got) != tc.want {
				t.Errorf("%s: got %d objects, want %d", tc.reason, len(got), tc.want)
			}
		})
	}
}

func customSchemas(
	t *testing.T, p peer, request *api.ExperimentalListPackageCustomSchemasRequest, pairs []string,
) ([]*structpb.Struct, error) {
	t.Helper()
	ctx := metadata.AppendToOutgoingContext(t.Context(), pairs...)
	stream, err := api.NewExperimentalRegistryClient(p.conn).ExperimentalListPackageCustomSchemas(ctx, request)
	return receive(stream, err)
}

func sortStructs(all []*structpb.Struct) {
	encode := func(s *structpb.Struct) []byte {
		encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(s)
		if err != nil {
			return nil
		}
		return encoded
	}
	slices.SortFunc(all, func(a, b *structpb.Struct) int { return bytes.Compare(encode(a), encode(b)) })
}

// statusText returns the code and the text of an error.
func statusText(err error) string {
	s := status.Convert(err)
	return s.Code().String() + ": " + s.Message()
}
