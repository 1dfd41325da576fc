package timeline

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStyleLine(t *testing.T) {
	t.Parallel()
	ready := Line{At: 3456 * time.Millisecond, Subject: "catalog", Name: "sample", State: "READY", Detail: "127.0.0.1:50051", Tone: Good}
	cases := map[string]struct {
		reason string
		style  Style
		line   Line
		want   string
	}{
		"Plain": {
			"columns line up",
			Style{},
			ready,
			"    3.5s  catalog      sample                    READY             127.0.0.1:50051",
		},
		"Color": {
			"the tone colours the state, time and detail step back",
			Style{Color: true},
			ready,
			dim + "    3.5s  " + reset + "catalog      sample                    " + green + "READY             " + reset + dim + "127.0.0.1:50051" + reset,
		},
		"NoDetail": {
			"nothing trails",
			Style{},
			Line{Subject: "csv", Name: "a", State: "deleted"},
			"    0.0s  csv          a                         deleted",
		},
		"LongName": {
			"a long name pushes the rest aside and stays readable",
			Style{},
			Line{Subject: "csv", Name: strings.Repeat("n", 30), State: "Pending", Detail: "x"},
			"    0.0s  csv          " + strings.Repeat("n", 30) + " Pending           x",
		},
		"Cut": {
			"the detail is cut at the width, marked and kept on one line",
			Style{Width: 80},
			Line{Subject: "csv", Name: "a", State: "Pending", Detail: "one\ntwo three four five"},
			"    0.0s  csv          a                         Pending           one two thre…",
		},
		"NoRoom": {
			"a narrow terminal loses the detail, not the rest",
			Style{Width: 20},
			Line{Subject: "csv", Name: "a", State: "Pending", Detail: "x"},
			"    0.0s  csv          a                         Pending",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tc.style.Line(tc.line)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStyleTitle(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff("\nUpgrade", Style{}.Title("Upgrade")); diff != "" {
		t.Errorf("plain: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff("\n"+bold+"Upgrade"+reset, Style{Color: true}.Title("Upgrade")); diff != "" {
		t.Errorf("color: -want +got:\n%s", diff)
	}
}

func TestStyleTable(t *testing.T) {
	t.Parallel()
	rows := []Summary{
		{Package: "lantern", CSV: "lantern.v1.2.0", Phase: "Succeeded", Reason: "InstallSucceeded", Took: 1500 * time.Millisecond, OK: true},
		{Package: "an-unlucky-one", Phase: "no CSV", Reason: "no channel of that name in the package", Took: time.Minute},
	}
	want := strings.Join([]string{
		" SECONDS  PACKAGE         CSV             PHASE      REASON",
		"     1.5  lantern         lantern.v1.2.0  Succeeded  InstallSucceeded",
		"    60.0  an-unlucky-one                  no CSV     no channel of t…",
		"",
	}, "\n")
	if diff := cmp.Diff(want, Style{Width: 69}.Table(rows)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if colored := (Style{Color: true}).Table(rows); !strings.Contains(colored, green+"Succeeded") || !strings.Contains(colored, red+"no CSV") {
		t.Errorf("the phases are not coloured by how they ended:\n%q", colored)
	}
}
