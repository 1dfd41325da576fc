package console_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/cmd/internal/console"
)

func TestTable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason string
		rows   [][]string
		whole  int
		width  int
		want   string
	}{
		"Whole":     {reason: "names stay whole", rows: [][]string{{strings.Repeat("x", 20), strings.Repeat("y", 15)}}, whole: 1, width: 34, want: "> xxxxxxxxxxxxxxxxxxxx  yyyyyyyyy…\n"},
		"AllWhole":  {reason: "a table of names is wider", rows: [][]string{{strings.Repeat("x", 20)}}, whole: 2, width: 10, want: "> xxxxxxxxxxxxxxxxxxxx\n"},
		"Aligned":   {reason: "columns stand below each other, and lines do not end with spaces", rows: [][]string{{"A", "B", ""}, {"long", "", "c"}}, want: "> A     B\n> long     c\n"},
		"Cut":       {reason: "the widest column gives way first", rows: [][]string{{"short", strings.Repeat("x", 30)}}, width: 20, want: "> short  xxxxxxxxxx…\n"},
		"Least":     {reason: "a table that cannot be as narrow is wider", rows: [][]string{{"abcdefgh", "ijklmnop"}}, width: 10, want: "> abcde…  ijklm…\n"},
		"Runes":     {reason: "letters count, not bytes", rows: [][]string{{"äöü", "b"}, {"abc", "d"}}, want: "> äöü  b\n> abc  d\n"},
		"Line":      {reason: "what a cluster says cannot break the table", rows: [][]string{{"a\nb\x1b[2J", "c"}}, want: "> a b\ufffd[2J  c\n"},
		"Different": {reason: "rows may end early", rows: [][]string{{"a"}, {"b", "c"}}, want: "> a\n> b  c\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := console.Table{Whole: tt.whole}
			for _, row := range tt.rows {
				table.Add(row...)
			}
			if diff := cmp.Diff(tt.want, table.Text("> ", tt.width)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// TestStyledCells checks that colors take no width.
func TestStyledCells(t *testing.T) {
	t.Parallel()
	var table console.Table
	bold := func(text string) string { return "<" + text + ">" }
	table.AddCells(console.Cell{Text: "a", Style: bold}, console.Cell{Text: "b"})
	table.Add("abc", "d")
	if diff := cmp.Diff("<a>    b\nabc  d\n", table.Text("", 0)); diff != "" {
		t.Error(diff)
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	word := strings.Repeat("w", 100)
	text := console.Wrap("- ", "  ", strings.Repeat("twelve chars ", 12)+word+"\nend")
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > console.Width && !strings.Contains(line, word) {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	if !strings.HasPrefix(text, "- twelve") || !strings.Contains(text, "\n  twelve") || !strings.Contains(text, word+"\n  end\n") {
		t.Error(text)
	}
}
