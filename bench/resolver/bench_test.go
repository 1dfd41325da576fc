package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestCopiesAreRenamedThroughout(t *testing.T) {
	got, err := renameValue(json.RawMessage(`{"all":{"constraints":[{"package":{"packageName":"a","versionRange":"1.x"}},`+
		`{"gvk":{"group":"g.example","kind":"K","version":"v1"}}]}}`), "-2")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"all":{"constraints":[{"package":{"packageName":"a-2","versionRange":"1.x"}},` +
		`{"gvk":{"group":"g.example-2","kind":"K","version":"v1"}}]}}`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPictureIsWellFormed(t *testing.T) {
	f := figures{
		byCatalog:       []catalogPoint{{packages: 10, plain: micro, dependent: 40 * micro}, {packages: 80, plain: 2 * micro, dependent: milli}},
		bySubscriptions: []subscriptionPoint{{subscriptions: 1, cold: 3 * micro, memo: 100}, {subscriptions: 300, cold: milli, memo: micro}},
	}
	decoder := xml.NewDecoder(strings.NewReader(f.plot().svg()))
	circles := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "circle" {
			circles++
		}
	}
	if circles != 8 {
		t.Errorf("%d points are drawn, want 8", circles)
	}
}
