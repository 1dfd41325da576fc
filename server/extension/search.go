package extension

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// search is a search for packages.
type search struct {
	// words are in lower case. A package must match each of them.
	words         []string
	provides      *bundles.GVK
	categories    []string
	notDeprecated bool
}

// newSearch returns the search of a request.
func newSearch(r *registryv1.SearchPackagesRequest) (*search, error) {
	words := strings.Fields(strings.ToLower(r.GetQuery()))
	provides, err := wantedAPI(r.GetProvides())
	switch {
	case len(r.GetQuery()) > maxQuery:
		return nil, invalid("query", "must have at most %d bytes, found %d: use fewer words", maxQuery, len(r.GetQuery()))
	case len(words) > maxWords:
		return nil, invalid("query", "must have at most %d words, found %d: use fewer", maxWords, len(words))
	}
	if err := cmp.Or(err, checkNames("categories", r.GetCategories())); err != nil {
		return nil, err
	}
	return &search{
		words: words, provides: provides, categories: r.GetCategories(), notDeprecated: r.GetExcludeDeprecated(),
	}, nil
}

// packageMatch is a package that matches a search.
type packageMatch struct {
	pkg    string
	score  int
	fields []registryv1.SearchField
}

// compareHits orders the best hits first.
func compareHits(a, b packageMatch) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.pkg, b.pkg))
}

// match returns the score of a package and reports whether it matches.
func (s *search) match(p *index.Summary) (packageMatch, bool) {
	if !s.admits(p) {
		return packageMatch{}, false
	}
	out := packageMatch{pkg: p.Package}
	var found [len(fieldsByRank) + 1]bool
	for _, word := range s.words {
		score := 0
		for _, field := range fieldsByRank {
			if w := scoreIn(field, p, word); w > 0 {
				score += w
				found[field] = true
			}
		}
		if score == 0 {
			return packageMatch{}, false
		}
		out.score += score
	}
	for _, field := range fieldsByRank {
		if found[field] {
			out.fields = append(out.fields, field)
		}
	}
	return out, true
}

// admits reports whether a package meets the conditions other than the words.
func (s *search) admits(p *index.Summary) bool {
	switch {
	case s.notDeprecated && p.Deprecation != "",
		s.provides != nil && !slices.Contains(p.APIs, *s.provides):
		return false
	case len(s.categories) == 0:
		return true
	}
	return slices.ContainsFunc(p.Categories, func(has string) bool {
		return slices.ContainsFunc(s.categories, func(wanted string) bool { return strings.EqualFold(has, wanted) })
	})
}

// fieldsByRank are the searched fields, in the order of the enum.
var fieldsByRank = [...]registryv1.SearchField{
	registryv1.SearchField_SEARCH_FIELD_NAME,
	registryv1.SearchField_SEARCH_FIELD_DISPLAY_NAME,
	registryv1.SearchField_SEARCH_FIELD_KEYWORD,
	registryv1.SearchField_SEARCH_FIELD_API,
	registryv1.SearchField_SEARCH_FIELD_CATEGORY,
	registryv1.SearchField_SEARCH_FIELD_PROVIDER,
	registryv1.SearchField_SEARCH_FIELD_DESCRIPTION,
}

// wordScores holds the scores of a word that is the whole text, begins the text, begins a word of the text,
// or occurs anywhere.
type wordScores struct {
	whole, start, word, inside int
}

// scoreIn returns the score of a word in a field of a package; zero if it does not occur.
func scoreIn(field registryv1.SearchField, p *index.Summary, word string) int {
	switch field {
	case registryv1.SearchField_SEARCH_FIELD_NAME:
		return wordScores{whole: 120, start: 60, word: 50, inside: 30}.in(p.Package, word)
	case registryv1.SearchField_SEARCH_FIELD_DISPLAY_NAME:
		return wordScores{whole: 80, start: 40, word: 35, inside: 20}.in(p.DisplayName, word)
	case registryv1.SearchField_SEARCH_FIELD_KEYWORD:
		return wordScores{whole: 40, start: 20, word: 15, inside: 8}.best(p.Keywords, word)
	case registryv1.SearchField_SEARCH_FIELD_API:
		return bestAPI(p.APIs, word)
	case registryv1.SearchField_SEARCH_FIELD_CATEGORY:
		return wordScores{whole: 15, start: 8, word: 8, inside: 4}.best(p.Categories, word)
	case registryv1.SearchField_SEARCH_FIELD_PROVIDER:
		return wordScores{whole: 15, start: 10, word: 8, inside: 4}.in(p.Provider, word)
	default:
		return wordScores{whole: 5, start: 4, word: 3, inside: 1}.in(p.Description, word)
	}
}

// bestAPI returns the score of a word in the APIs of a package: in their kinds, in their groups, or
// as "kind.group".
func bestAPI(apis []bundles.GVK, word string) int {
	best := 0
	for _, api := range apis {
		best = max(best,
			wordScores{whole: 50, start: 20, word: 10, inside: 10}.in(api.Kind, word),
			wordScores{whole: 30, start: 10, word: 10, inside: 5}.in(api.Group, word))
		if kind, group, ok := strings.Cut(word, "."); ok && strings.EqualFold(kind, api.Kind) && strings.EqualFold(group, api.Group) {
			best = max(best, 60)
		}
	}
	return best
}

// best returns the highest score of a word in one of the texts.
func (w wordScores) best(texts []string, word string) int {
	best := 0
	for _, text := range texts {
		best = max(best, w.in(text, word))
	}
	return best
}

// in returns the score of a word in a text.
func (w wordScores) in(text, word string) int {
	best := 0
	for from := 0; ; {
		at, size := indexFold(text[from:], word)
		if at < 0 {
			return best
		}
		at += from
		switch {
		case at == 0 && len(text) == size:
			return w.whole
		case at == 0:
			return w.start
		case beginsWord(text, at):
			return w.word
		}
		best = w.inside
		from = at + size
	}
}

// beginsWord reports whether a word of the text begins at a position.
func beginsWord(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	return !unicode.IsLetter(before) && !unicode.IsDigit(before)
}
