package release

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var errNoSection = errors.New("CHANGELOG.md has no section for the version; rename its section Unreleased")

// relativeLink matches the target of a Markdown link to a file of the repository.
var relativeLink = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// notes returns the release notes: the version's section of a changelog, with links that work outside the
// repository. A pre-release without a section has the section Unreleased.
func notes(changelog string, version Version) (string, error) {
	body, found := section(changelog, version.String())
	if !found && version.IsPrerelease() {
		body, found = section(changelog, "Unreleased")
	}
	if !found || body == "" {
		return "", fmt.Errorf("%s: %w", version, errNoSection)
	}
	body = relativeLink.ReplaceAllString(body, "]("+repository+"/blob/"+version.Tag()+"/$1$2)")
	return fmt.Sprintf("# Chandlery %s\n\n%s\n", version, body), nil
}

// section returns the text of a section of the second level whose heading names a version.
func section(changelog, name string) (string, bool) {
	var body []string
	inside, found := false, false
	for line := range strings.Lines(changelog) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			inside = strings.HasPrefix(heading, "["+name+"]")
			found = found || inside
			continue
		}
		if inside {
			body = append(body, line)
		}
	}
	return strings.TrimSpace(strings.Join(body, "")), found
}
