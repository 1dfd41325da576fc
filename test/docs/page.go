package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Page is a Markdown file.
type Page struct {
	// Path is the path from the root of the repository, with slashes.
	Path string
	// Lines is the number of lines.
	Lines int
	// Links are the targets of its links and pictures, in their original form.
	Links []Span
	// Code holds its code spans.
	Code []Span
	// Fences are its code blocks.
	Fences []Fence
	// Headings are the texts of its headings.
	Headings []Span
	// Tables are its tables, each with the heading above it.
	Tables []Table
	// itemLines are the lines that begin a list item outside code.
	itemLines []int
	// anchors are the anchors of its headings on a code host.
	anchors map[string]bool
}

// Span is a text within a line.
type Span struct {
	Text string
	// Line is its line number, from 1.
	Line int
}

// Fence is a code block.
type Fence struct {
	// Language is the text after the opening fence.
	Language string
	// Content holds its lines.
	Content []Span
}

// Table is a table.
type Table struct {
	// Section is the preceding heading of the second level.
	Section string
	// Header and Rows hold its cells.
	Header []string
	Rows   []Row
}

// Row is a line of a table.
type Row struct {
	Cells []string
	Line  int
}

// Pages reads all pages of the repository.
func Pages(root string) ([]Page, error) {
	var pages []Page
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "out" || entry.Name() == "bin" || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		pages = append(pages, Parse(filepath.ToSlash(name), string(text)))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading pages: %w", err)
	}
	return pages, nil
}

var (
	linkPattern    = regexp.MustCompile(`!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^()]*\))?[^()\s]*)\)`)
	codePattern    = regexp.MustCompile("``([^`]+(?:`[^`]+)*)``|`([^`]+)`")
	headingPattern = regexp.MustCompile(`^(#{1,6})\s+(.+?)\s*#*$`)
)

// Parse parses a page.
func Parse(path, text string) Page {
	page := Page{Path: path, anchors: map[string]bool{}}
	section := ""
	var fence *Fence
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		at := i + 1
		page.Lines = at
		if language, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
			if fence != nil {
				page.Fences = append(page.Fences, *fence)
				fence = nil
			} else {
				fence = &Fence{Language: language}
			}
			continue
		}
		if fence != nil {
			fence.Content = append(fence.Content, Span{line, at})
			continue
		}
		if heading := headingPattern.FindStringSubmatch(line); heading != nil {
			page.Headings = append(page.Headings, Span{heading[2], at})
			page.addAnchor(heading[2])
			if len(heading[1]) <= 2 {
				section = heading[2]
			}
		}
		if strings.HasPrefix(line, "- ") {
			page.itemLines = append(page.itemLines, at)
		}
		page.addTable(section, line, at)
		page.addSpans(line, at)
	}
	return page
}

// items returns the code in the first line of each list item that has code.
func (p *Page) items() [][]Span {
	var items [][]Span
	for _, code := range p.Code {
		switch last := len(items) - 1; {
		case !slices.Contains(p.itemLines, code.Line):
		case last >= 0 && items[last][0].Line == code.Line:
			items[last] = append(items[last], code)
		default:
			items = append(items, []Span{code})
		}
	}
	return items
}

// addSpans adds the links and code in a line.
func (p *Page) addSpans(line string, at int) {
	for _, match := range codePattern.FindAllStringSubmatch(line, -1) {
		p.Code = append(p.Code, Span{match[1] + match[2], at})
	}
	plain := codePattern.ReplaceAllStringFunc(line, func(code string) string { return strings.Repeat("x", len(code)) })
	for _, match := range linkPattern.FindAllStringSubmatch(plain, -1) {
		p.Links = append(p.Links, Span{match[1], at})
	}
}

// addTable adds a line to its table.
func (p *Page) addTable(section, line string, at int) {
	trimmed := strings.TrimSpace(line)
	if !strings.HasPrefix(trimmed, "|") {
		return
	}
	row := Row{Cells: cells(trimmed), Line: at}
	last := len(p.Tables) - 1
	follows := last >= 0 && p.Tables[last].lastLine() == at-1
	switch {
	case !follows:
		p.Tables = append(p.Tables, Table{Section: section, Header: row.Cells, Rows: []Row{row}})
	case !strings.Contains(trimmed, "---") || strings.Trim(trimmed, "|-: ") != "":
		p.Tables[last].Rows = append(p.Tables[last].Rows, row)
	default: // the line below the header is replaced
		p.Tables[last].Rows[0] = Row{Line: at}
	}
}

func (t Table) lastLine() int { return t.Rows[len(t.Rows)-1].Line }

// Body returns the rows below the header.
func (t Table) Body() []Row { return t.Rows[1:] }

// cells splits a row at bars without an escape.
func cells(row string) []string {
	row = strings.ReplaceAll(strings.Trim(row, "|"), `\|`, "\x00")
	var all []string
	for cell := range strings.SplitSeq(row, "|") {
		all = append(all, strings.ReplaceAll(strings.TrimSpace(cell), "\x00", "|"))
	}
	return all
}

// addAnchor adds the anchor of a heading.
func (p *Page) addAnchor(heading string) {
	heading = linkText.ReplaceAllString(heading, "$1")
	name := Anchor(heading)
	for i := 1; p.anchors[name]; i++ {
		name = fmt.Sprintf("%s-%d", Anchor(heading), i)
	}
	p.anchors[name] = true
}

var linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// Anchor returns the anchor that code hosts assign to a heading.
func Anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		default:
			return -1
		}
	}, heading)
}

// spans returns the code spans of a cell.
func spans(cell string) []string {
	var all []string
	for _, match := range codePattern.FindAllStringSubmatch(cell, -1) {
		all = append(all, match[1]+match[2])
	}
	return slices.Clip(all)
}
