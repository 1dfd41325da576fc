package catalogfile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// errLayout means that a document cannot be changed without encoding it as a whole.
var errLayout = errors.New("the layout has no place for it")

func (f *File) addYAML(value any) ([]byte, error) {
	added, err := yamlText(value)
	if err != nil {
		return nil, err
	}
	end := lineEnd(f.text)
	text := slices.Clone(f.text)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, end...)
	}
	return slices.Concat(text, []byte("---"+end), withLineEnd(added, end)), nil
}

// yamlText returns a value as YAML.
func yamlText(value any) ([]byte, error) {
	encoded, err := marshal(value, "", "")
	if err != nil {
		return nil, err
	}
	text, err := yaml.JSONToYAML(encoded)
	if err != nil {
		return nil, fmt.Errorf("encoding the value: %w", err)
	}
	return text, nil
}

// lineEnd returns the line end of a text.
func lineEnd(text []byte) string {
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

func withLineEnd(text []byte, end string) []byte {
	return bytes.ReplaceAll(text, []byte("\n"), []byte(end))
}

// editYAML edits a YAML document in block style by adding or replacing lines.
func editYAML(text []byte, e edit) ([]byte, error) {
	if hasOtherBreaks(text) {
		return nil, errLayout
	}
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("reading the document: %w", err)
	}
	if len(root.Content) != 1 {
		return nil, errLayout
	}
	node, key, err := findNode(root.Content[0], e.path)
	if err != nil {
		return nil, err
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	if !e.append {
		return setLines(lines, node, key, e, lineEnd(text))
	}
	switch {
	case node == nil:
		return nil, errLayout // the field is missing
	case node.Kind == yamlv3.SequenceNode && node.Style&yamlv3.FlowStyle == 0 && len(node.Content) > 0:
		item, err := itemLines(e.value, strings.Repeat(" ", node.Column-1), lineEnd(text))
		if err != nil {
			return nil, err
		}
		return insertLines(lines, lastLine(lines, node.Line-1, node.Column-1, true), item), nil
	}
	return nil, errLayout
}

// hasOtherBreaks reports whether a text has line breaks besides LF and CRLF. YAML counts a lone CR, NEL, LS and PS too,
// so the lines of its nodes would be others than those of the text.
func hasOtherBreaks(text []byte) bool {
	text = bytes.ReplaceAll(text, []byte("\r\n"), nil)
	return bytes.ContainsAny(text, "\r\u0085\u2028\u2029")
}

// itemLines returns a value as an element of a list in block style.
func itemLines(value any, margin, end string) ([]byte, error) {
	text, err := yamlText([]any{value})
	if err != nil {
		return nil, err
	}
	return withMargin(text, margin, end), nil
}

func withMargin(text []byte, margin, end string) []byte {
	var out []byte
	for line := range bytes.Lines(text) {
		if len(bytes.TrimSpace(line)) > 0 {
			out = append(out, margin...)
		}
		out = append(out, line...)
	}
	return withLineEnd(out, end)
}

// insertLines inserts text after a line. Lines count from zero.
func insertLines(lines [][]byte, after int, text []byte) []byte {
	before := bytes.Join(lines[:after+1], nil)
	if len(before) > 0 && before[len(before)-1] != '\n' {
		before = append(before, lineEnd(before)...)
	}
	return slices.Concat(before, text, bytes.Join(lines[after+1:], nil))
}

// lastLine returns the last line of a collection in block style that begins on a line and has
// elements with an indentation. A list ends before a line of the same indentation without a dash.
func lastLine(lines [][]byte, first, indent int, isList bool) int {
	last := first
	for i := first + 1; i < len(lines); i++ {
		content := bytes.TrimLeft(lines[i], " ")
		margin := len(lines[i]) - len(content)
		switch trimmed := bytes.TrimSpace(content); {
		case len(trimmed) == 0:
			continue
		case margin > indent:
			last = i
		case trimmed[0] == '#':
			continue
		case margin < indent || isList && !isItem(trimmed):
			return last
		default:
			last = i
		}
	}
	return last
}

func isItem(line []byte) bool {
	return len(line) == 1 && line[0] == '-' || bytes.HasPrefix(line, []byte("- "))
}

// setLines replaces the value of a key.
func setLines(lines [][]byte, node, key *yamlv3.Node, e edit, end string) ([]byte, error) {
	if node == nil || key == nil || node.LineComment != "" || node.FootComment != "" || node.Kind == yamlv3.AliasNode || node.Anchor != "" {
		return nil, errLayout
	}
	value, err := yamlText(map[string]any{key.Value: e.value})
	if err != nil {
		return nil, err
	}
	first, indent := key.Line-1, key.Column-1
	last := lastLine(lines, first, indent, false)
	// The line of the next key has the same indentation.
	for i := first + 1; i <= last; i++ {
		content := bytes.TrimLeft(lines[i], " ")
		if margin := len(lines[i]) - len(content); margin <= indent && len(bytes.TrimSpace(content)) > 0 {
			last = contentEnd(lines, first, i-1)
			break
		}
	}
	text := withMargin(value, strings.Repeat(" ", indent), end)
	// The key may follow the dash of a list.
	text = slices.Concat(lines[first][:indent], bytes.TrimLeft(text, " "))
	return slices.Concat(bytes.Join(lines[:first], nil), text, bytes.Join(lines[last+1:], nil)), nil
}

// contentEnd returns the last line up to a line that is neither empty nor a comment.
func contentEnd(lines [][]byte, first, last int) int {
	for ; last > first; last-- {
		if line := bytes.TrimSpace(lines[last]); len(line) > 0 && line[0] != '#' {
			break
		}
	}
	return last
}

// findNode returns the node at a path and its key. The node is nil if the last field of the path is missing.
func findNode(node *yamlv3.Node, path Path) (found, key *yamlv3.Node, err error) {
	for i, step := range path {
		if node.Kind == yamlv3.AliasNode {
			return nil, nil, errLayout
		}
		next, nextKey := childNode(node, step)
		if next == nil && i == len(path)-1 && !step.element {
			return nil, nil, nil
		}
		if next == nil {
			return nil, nil, fmt.Errorf("%s: %w", path[:i+1], errNoValue)
		}
		node, key = next, nextKey
	}
	return node, key, nil
}

func childNode(node *yamlv3.Node, step Step) (value, key *yamlv3.Node) {
	if step.element {
		if node.Kind == yamlv3.SequenceNode && step.index < len(node.Content) {
			return node.Content[step.index], nil
		}
		return nil, nil
	}
	if node.Kind != yamlv3.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == step.key {
			return node.Content[i+1], node.Content[i]
		}
	}
	return nil, nil
}

// editNodes edits the nodes of a YAML document and encodes it as a whole.
func editNodes(text []byte, e edit) ([]byte, error) {
	var root, value yamlv3.Node
	if err := yamlv3.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("reading the document: %w", err)
	}
	encoded, err := yamlText(e.value)
	if err != nil {
		return nil, err
	}
	if err := yamlv3.Unmarshal(encoded, &value); err != nil {
		return nil, fmt.Errorf("reading the value: %w", err)
	}
	if len(root.Content) != 1 || len(value.Content) != 1 || len(e.path) == 0 {
		return nil, errLayout
	}
	if err := setNode(root.Content[0], e, value.Content[0]); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := yamlv3.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(&root), encoder.Close()); err != nil {
		return nil, fmt.Errorf("encoding the document: %w", err)
	}
	return withLineEnd(out.Bytes(), lineEnd(text)), nil
}

func setNode(root *yamlv3.Node, e edit, value *yamlv3.Node) error {
	node, _, err := findNode(root, e.path)
	if err != nil {
		return err
	}
	switch {
	case node != nil && e.append && node.Kind == yamlv3.SequenceNode:
		node.Style &^= yamlv3.FlowStyle
		node.Content = append(node.Content, value)
		return nil
	case e.append:
		value = &yamlv3.Node{Kind: yamlv3.SequenceNode, Tag: "!!seq", Content: []*yamlv3.Node{value}}
	}
	if node != nil {
		value.HeadComment, value.LineComment, value.FootComment = node.HeadComment, node.LineComment, node.FootComment
		*node = *value
		return nil
	}
	parent, _, err := findNode(root, e.path[:len(e.path)-1])
	if err != nil || parent == nil || parent.Kind != yamlv3.MappingNode {
		return errLayout
	}
	key := &yamlv3.Node{Kind: yamlv3.ScalarNode, Tag: "!!str", Value: e.path[len(e.path)-1].key}
	parent.Content = append(parent.Content, key, value)
	return nil
}
