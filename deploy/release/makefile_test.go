package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMakeSelectsRelease checks which release make pushes, and that it refuses to push where there is none.
func TestMakeSelectsRelease(t *testing.T) {
	makefile, err := filepath.Abs("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		releases []string // from the oldest to the newest
		args     []string
		want     string
		fails    bool
	}{
		"Newest":     {releases: []string{"1.3.0", "1.2.0"}, want: "run ./deploy/release/command push out/release/1.2.0\n"},
		"Named":      {releases: []string{"1.3.0", "1.2.0"}, args: []string{"VERSION=v1.3.0"}, want: "run ./deploy/release/command push out/release/1.3.0\n"},
		"Incomplete": {releases: []string{"1.2.0", "1.3.0.incomplete"}, want: "run ./deploy/release/command push out/release/1.2.0\n"},
		"None":       {releases: []string{"1.3.0.incomplete"}, want: "There is no release in out/release/; run make release VERSION=… first.\n", fails: true},
		"NoneNamed": {
			releases: []string{"1.2.0"}, args: []string{"VERSION=1.3.0"}, fails: true,
			want: "There is no release in out/release/1.3.0; run make release VERSION=1.3.0 first.\n",
		},
	} {
		dir := t.TempDir()
		for i, release := range tt.releases {
			file := filepath.Join(dir, "out", "release", release, sumsFile)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, time.Time{}, epoch.Add(time.Duration(i)*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "make", append([]string{"-f", makefile, "GO=echo", "release-push"}, tt.args...)...)
		cmd.Dir = dir
		// The variables of a make that runs this test would replace these.
		cmd.Env = slices.DeleteFunc(os.Environ(), func(one string) bool { return strings.HasPrefix(one, "MAKE") || strings.HasPrefix(one, "MFLAGS") })
		out, err := cmd.CombinedOutput()
		// Then make reports that a command failed.
		if line, _, _ := strings.Cut(string(out), "make: "); line != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
