package samples_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/docs"
)

const root = "../../.."

var update = flag.Bool("update", false, "write what is printed into the pages, where it is not what they show")

// sample is a block of output on a page.
type sample struct {
	// page is the path of the page. begins is the beginning of the first line.
	page, begins string
	// command is the command: words for kubectl.
	command string
	// user runs the command; empty for an administrator.
	user string
}

// live are the samples of commands for a cluster, in the order in which the commands run.
var live = []sample{
	{page: "README.md", begins: "SUPERVISOR ", command: "chandlery status -A"},
	{page: "docs/command-line.md", begins: "Subscription demo-lantern/lantern: ", command: "chandlery explain lantern -n demo-lantern"},
	{page: "docs/command-line.md", begins: "API ", command: "chandlery discover subscriptions -n shop", user: "alice"},
	{page: "docs/command-line.md", begins: "InstallPlan lab/", command: "chandlery approve --all -n lab --yes"},
}

// planned is the sample of a dry run, which needs no cluster.
var planned = sample{
	page: "docs/command-line.md", begins: "Namespace shop: ", command: "chandlery plan -f subscription.yaml --catalog ./catalog",
}

// told is the sample of a history that covers days. The test of the history renders it.
var (
	told     = sample{page: "docs/command-line.md", begins: "Subscription shop/my-lamp: ", command: "chandlery history my-lamp -n shop"}
	rendered = "cmd/internal/command/history/timeline/testdata/waiting.txt"
)

// drawings are blocks that are not output.
var drawings = []sample{{page: "README.md", begins: "  catalog: directory, image "}}

// varying are the parts of an output that differ between two runs.
var varying = []struct {
	what    string
	pattern *regexp.Regexp
	instead string
}{
	{"the process of a supervisor", regexp.MustCompile(`\b(supervisor-[a-z])_[0-9a-f]{8}\b`), "${1}_PROCESS"},
	{"the name of an InstallPlan", regexp.MustCompile(`\binstall-[a-z0-9]+\b`), "install-NAME"},
	{"the name of a pod", regexp.MustCompile(`\blantern-operator-[a-z0-9]+-[a-z0-9]{5}\b`), "lantern-operator-POD"},
	{"how long something is so, or there", regexp.MustCompile(`\b(for|created) (?:<1s|(?:\d+[hms])+)`), "$1 AGE"},
	// Line breaks and the widths of columns depend on names and times.
	{"spaces, and ends of lines within a paragraph", regexp.MustCompile(`\s+`), " "},
}

// steady returns an output without the varying parts, one paragraph per line.
func steady(output string) []string {
	var paragraphs []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(output), "\n\n") {
		for _, v := range varying {
			paragraph = v.pattern.ReplaceAllString(paragraph, v.instead)
		}
		paragraphs = append(paragraphs, paragraph)
	}
	return paragraphs
}

// on returns the text of a sample on its page.
func (s sample) on(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(s.page)))
	if err != nil {
		t.Fatal(err)
	}
	for _, fence := range docs.Parse(s.page, string(text)).Fences {
		if s.is(s.page, fence) {
			return textOf(fence)
		}
	}
	t.Fatalf("%s has no sample that begins with %q", s.page, s.begins)
	return ""
}

// report fails for a sample that differs from the output, or corrects the page.
func (s sample) report(t *testing.T, printed, difference string) {
	t.Helper()
	if !*update {
		t.Errorf("%s does not show what kubectl %s prints (go test ./test/e2e/samples -update fixes it): %s\nit prints\n%s", s.page, s.command, difference, printed)
		return
	}
	path, shown := filepath.Join(root, filepath.FromSlash(s.page)), s.on(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), shown, printed, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s sample) is(page string, fence docs.Fence) bool {
	return s.page == page && fence.Language == "text" && strings.HasPrefix(textOf(fence), s.begins)
}

func textOf(fence docs.Fence) string {
	var text strings.Builder
	for _, line := range fence.Content {
		text.WriteString(line.Text + "\n")
	}
	return text.String()
}

// TestEverySample checks that every sample on these pages is tested.
func TestEverySample(t *testing.T) {
	known := append([]sample{planned, told}, append(live, drawings...)...)
	pages := map[string]bool{}
	for _, s := range known {
		pages[s.page] = true
	}
	for page := range pages {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
		if err != nil {
			t.Fatal(err)
		}
		for _, fence := range docs.Parse(page, string(text)).Fences {
			n := 0
			for _, s := range known {
				if s.is(page, fence) {
					n++
				}
			}
			if fence.Language == "text" && n != 1 {
				t.Errorf("%s: %d of the samples of this test are this block, want 1:\n%s", page, n, textOf(fence))
			}
		}
	}
}

// TestSteady checks which outputs count as equal.
func TestSteady(t *testing.T) {
	const output = "InstallPlan lab/install-efzoyabkzo, for lantern, for 12s\n  > next\n\nNAME  AGE\nb     -\n"
	for name, tc := range map[string]struct {
		reason string
		output string
		same   bool
	}{
		"Name":      {"names are generated", "InstallPlan lab/install-aaa, for lantern, for 1m12s\n  > next\n\nNAME  AGE\nb     -\n", true},
		"Width":     {"lines are broken elsewhere", "InstallPlan lab/install-aaa,\n    for lantern, for <1s\n  > next\n\nNAME   AGE\nb      -\n", true},
		"Word":      {"another word", "InstallPlan lab/install-aaa, of lantern, for 12s\n  > next\n\nNAME  AGE\nb     -\n", false},
		"Namespace": {"another namespace", "InstallPlan shop/install-aaa, for lantern, for 12s\n  > next\n\nNAME  AGE\nb     -\n", false},
		"Paragraph": {"a paragraph less", "InstallPlan lab/install-aaa, for lantern, for 12s\n  > next\nNAME  AGE\nb     -\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cmp.Diff(steady(output), steady(tc.output)); (got == "") != tc.same {
				t.Errorf("%s:\n%s", tc.reason, got)
			}
		})
	}
}

// TestHistory compares the sample of a history with the rendering by the test of the history.
func TestHistory(t *testing.T) {
	printed, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(rendered)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(told.on(t), string(printed)); diff != "" {
		told.report(t, string(printed), diff)
	}
}
