package sources

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestLimits checks that rules with excessive work for the parser are refused.
func TestLimits(t *testing.T) {
	tables := func(from, count int) string {
		var all strings.Builder
		for i := range count {
			fmt.Fprintf(&all, "[[registry]]\nlocation = \"r%d.test\"\n", from+i)
		}
		return all.String()
	}
	for name, test := range map[string]invalidCase{
		"Tables": {
			keys: map[string]string{"registries.conf": tables(0, maxTables+1)},
			want: []string{"ConfigMap a/b key registries.conf: 2001 [[registry]] tables are too many, at most 2000 are allowed; join tables by a shorter prefix"},
		},
		"TablesOfSeveralFiles": {
			keys: map[string]string{"registries.conf": tables(0, maxTables), "a.registries.conf": tables(maxTables, 1)},
			want: []string{"ConfigMap a/b key a.registries.conf: 2001 [[registry]] tables are too many"},
		},
		"KeyOfManyParts": {
			keys: map[string]string{"registries.conf": "\n" + strings.Repeat("a.", maxDots+1) + "a = 1\n"},
			want: []string{"key registries.conf: has a line with too many dots: line 2 has 201, at most 200 are allowed; split the line"},
		},
		"NamedFiles": {
			keys: map[string]string{
				"a.test.hosts.toml": "[host.\"https://b.test\"]\nca = [" + strings.Repeat(`"long",`, 9) + "]\n", "long": strings.Repeat(" ", 1<<20),
			},
			want: []string{`line 2: "long" cannot be read: the files that hosts.toml names have more than 8388608 bytes in total`},
		},
		"LongProblem": {
			keys: map[string]string{"registries.conf": strings.Repeat("a", 1<<20) + " = 1\n"},
			want: []string{`unknown key "aaa`},
		},
	} {
		t.Run(name, test.check)
	}
	if _, err := Parse("a", map[string][]byte{"registries.conf": []byte(strings.Repeat("a", 1<<20) + " = 1\n")}); len(err.Error()) > 2*maxProblemBytes {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

func TestBudgetOfPairs(t *testing.T) {
	b := &budget{}
	long := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("A", 64)+"\n", maxKeyBytes/48+1) + "-----END PRIVATE KEY-----\n"
	if _, err := b.pair(nil, []byte(long)); !errors.Is(err, errLongKey) {
		t.Errorf("a long key: %v", err)
	}
	for range maxPairs {
		if _, err := b.pair(nil, nil); errors.Is(err, errManyPairs) {
			return
		}
	}
	t.Errorf("more than %d pairs", maxPairs)
}
