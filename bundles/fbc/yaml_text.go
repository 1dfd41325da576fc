package fbc

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// yamlText converts YAML documents in the form of common encoders to JSON, in a fraction of the
// time of a YAML parser. It supports block mappings and sequences, and plain, quoted and literal
// scalars on their own lines. It gives up on everything else: comments, anchors, tags, flow
// collections, folded lines, and scalars that look like strings but may not be.
type yamlText struct {
	yamlLines
	jsonOutput
}

// yamlLines reads a document line by line.
type yamlLines struct {
	text []byte
	// at is the start of the current line.
	at int
}

// jsonOutput is JSON under construction.
type jsonOutput struct{ out []byte }

const (
	maxYAMLDepth = 100
	maxYAMLKey   = 256
	// maxFolded is the largest length of a folded scalar. Each of its lines costs another scan of
	// the previous ones.
	maxFolded = 16 << 10
)

// convertYAML returns a document as JSON, if [yamlText] supports it. The document comes from
// [yamlDocuments]: lines that end with a newline.
func convertYAML(text []byte) ([]byte, bool) {
	if !plainCharacters(text) {
		return nil, false
	}
	y := yamlText{yamlLines{text: text}, jsonOutput{make([]byte, 0, len(text)+len(text)/8)}}
	if line := y.line(); bytes.Equal(line, yamlSeparator) {
		y.skip()
	}
	indent, ok := y.next()
	if !ok || indent != 0 || !y.mapping(0, 0, 0) {
		return nil, false
	}
	if _, more := y.next(); more {
		return nil, false
	}
	return y.out, true
}

// plainCharacters reports whether a text has only line ends and characters that mean the same in
// YAML and JSON in any position.
func plainCharacters(text []byte) bool {
	for i, c := range text {
		switch {
		case c < ' ' && c != '\n', c == 0x7f:
			return false
		case c >= utf8.RuneSelf && isPeculiar(text[i:]):
			return false
		}
	}
	return true
}

// isPeculiar reports whether a text begins with a line separator, the byte order mark or an invalid
// character. It also returns true for characters that it does not distinguish from these.
func isPeculiar(text []byte) bool {
	switch text[0] {
	case 0xc2:
		return len(text) > 1 && text[1] < 0xa0
	case 0xe2:
		return len(text) > 2 && text[1] == 0x80 && text[2]&^1 == 0xa8
	case 0xef:
		return len(text) > 1 && text[1] >= 0xbb
	default:
		return false
	}
}

// line returns the current line without its end.
func (y *yamlLines) line() []byte {
	line, _, _ := bytes.Cut(y.text[y.at:], []byte("\n"))
	return line
}

// skip moves to the next line.
func (y *yamlLines) skip() { y.at = min(len(y.text), y.at+len(y.line())+1) }

// next skips empty lines and returns the indentation of the next line; false at the end.
func (y *yamlLines) next() (indent int, ok bool) {
	for y.at < len(y.text) && y.text[y.at] == '\n' {
		y.at++
	}
	if y.at >= len(y.text) {
		return 0, false
	}
	return indentation(y.line()), true
}

func indentation(line []byte) int {
	n := 0
	for n < len(line) && line[n] == ' ' {
		n++
	}
	return n
}

// mapping converts the block mapping with an indentation. Its first key is at a column of the current line.
func (y *yamlText) mapping(indent, column, depth int) bool {
	if depth > maxYAMLDepth {
		return false
	}
	y.out = append(y.out, '{')
	for first := true; ; first = false {
		if !first {
			found, ok := y.next()
			if !ok || found < indent || y.isItem(found) {
				break
			}
			if found != indent {
				return false
			}
			y.out = append(y.out, ',')
			column = found
		}
		line := y.line()
		key := keyLength(line[column:])
		if key == 0 {
			return false
		}
		y.out = append(y.out, '"')
		y.out = append(y.out, line[column:column+key]...)
		y.out = append(y.out, '"', ':')
		if !y.value(line[column+key+1:], indent, depth) {
			return false
		}
	}
	y.out = append(y.out, '}')
	return true
}

// isItem reports whether the current line is an item of a sequence.
func (y *yamlLines) isItem(indent int) bool {
	return bytes.HasPrefix(y.line()[indent:], []byte("- "))
}

// keyLength returns the length of the key at the beginning of a line, up to its colon, or zero.
func keyLength(line []byte) int {
	n := 0
	for n < len(line) && n < maxYAMLKey && isKeyCharacter(line[n]) {
		n++
	}
	if n == 0 || n >= len(line) || line[n] != ':' || (n+1 < len(line) && line[n+1] != ' ') {
		return 0
	}
	if !isLetter(line[0]) || isSpecial(line[:n]) {
		return 0
	}
	return n
}

func isKeyCharacter(c byte) bool {
	return isLetter(c) || ('0' <= c && c <= '9') || c == '-' || c == '_' || c == '.' || c == '/'
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// isSpecial reports whether a plain scalar that begins with a letter may not be a string.
func isSpecial(text []byte) bool {
	const longest = len("false")
	if len(text) > longest {
		return false
	}
	switch strings.ToLower(string(text)) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return true
	default:
		return false
	}
}

// value converts the value after a key's colon or on the following lines.
func (y *yamlText) value(rest []byte, indent, depth int) bool {
	if len(rest) > 0 {
		return y.scalar(rest[1:], indent)
	}
	y.skip()
	found, ok := y.next()
	switch {
	case ok && found >= indent && y.isItem(found):
		return y.sequence(found, depth+1)
	case ok && found > indent:
		return y.mapping(found, found, depth+1)
	default:
		y.out = append(y.out, "null"...)
		return true
	}
}

// sequence converts the block sequence with an indentation.
func (y *yamlText) sequence(indent, depth int) bool {
	if depth > maxYAMLDepth {
		return false
	}
	const marker = len("- ")
	y.out = append(y.out, '[')
	for first := true; ; first = false {
		if !first {
			found, ok := y.next()
			if !ok || found < indent || (found == indent && !y.isItem(found)) {
				break
			}
			if found != indent {
				return false
			}
			y.out = append(y.out, ',')
		}
		item := y.line()[indent+marker:]
		if keyLength(item) > 0 {
			if !y.mapping(indent+marker, indent+marker, depth+1) {
				return false
			}
			continue
		}
		if !y.scalar(item, indent) {
			return false
		}
	}
	y.out = append(y.out, ']')
	return true
}

// scalar converts a value that begins on the current line, in a collection with an indentation, and
// moves to the next line.
func (y *yamlText) scalar(text []byte, indent int) bool {
	if len(text) == 0 {
		return false
	}
	y.skip()
	var ok bool
	switch text[0] {
	case '|':
		return y.literal(text, indent)
	case '\'':
		ok = y.singleQuoted(y.closed(text, indent, singleOpen))
	case '"':
		ok = y.doubleQuoted(y.closed(text, indent, doubleOpen))
	case '[', '{':
		ok = string(text) == "[]" || string(text) == "{}"
		y.out = append(y.out, text...)
	default:
		if text, ok = y.folded(text, indent); ok {
			ok = y.plain(text)
		}
	}
	if !ok {
		return false
	}
	// The next line must not continue the value.
	found, more := y.next()
	return !more || found <= indent
}

// folded appends the continuation lines of a plain scalar to its first line.
func (y *yamlLines) folded(text []byte, indent int) ([]byte, bool) {
	for y.at < len(y.text) {
		line := y.line()
		found := indentation(line)
		if found <= indent || found == len(line) {
			break
		}
		line = line[found:]
		if len(text) > maxFolded || !isPlainText(text) || !isPlainText(line) || !isLetter(line[0]) {
			return nil, false
		}
		text = append(append(bytes.Clone(text), ' '), line...)
		y.skip()
	}
	return text, true
}

// isPlainText reports whether a line is nothing but a line of a plain scalar.
func isPlainText(line []byte) bool {
	last := line[len(line)-1]
	return last != ' ' && last != ':' && !bytes.Contains(line, []byte(": ")) && !bytes.Contains(line, []byte(" #"))
}

// plain converts a scalar without quotes.
func (o *jsonOutput) plain(text []byte) bool {
	if !isPlainText(text) {
		return false
	}
	switch c := text[0]; {
	case isLetter(c) && !isSpecial(text), c == '/', isDigit(c) && !mayBeNumber(text):
		o.quote(text)
		return true
	case string(text) == "true", string(text) == "false", string(text) == "null":
	case !isWholeNumber(text):
		return false
	}
	o.out = append(o.out, text...)
	return true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// mayBeNumber reports whether a text that begins with a digit may be a number or a time.
func mayBeNumber(text []byte) bool {
	// A text with two dots is neither.
	if bytes.Count(text, []byte(".")) > 1 {
		return false
	}
	allowed := "_.eE+-:TtZ "
	if text[0] == '0' {
		allowed += "abcdefABCDEFxXoO"
	}
	for _, c := range text {
		if !isDigit(c) && strings.IndexByte(allowed, c) < 0 {
			return false
		}
	}
	return true
}

// isWholeNumber reports whether a number has the same form in JSON.
func isWholeNumber(text []byte) bool {
	const longest = 15
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) <= longest && (text[0] != '0' || len(text) == 1)
}

// closed appends the continuation lines of a quoted scalar to its first line. The result stays open
// if folding the lines does not suffice.
func (y *yamlLines) closed(text []byte, indent int, open func([]byte) bool) []byte {
	for open(text) && y.at < len(y.text) {
		line := y.line()
		found := indentation(line)
		last := text[len(text)-1]
		if len(text) > maxFolded || found <= indent || found == len(line) || last == ' ' || last == '\\' {
			break
		}
		text = append(append(bytes.Clone(text), ' '), line[found:]...)
		y.skip()
	}
	return text
}

// singleOpen reports whether a scalar in single quotes continues: quotes come in pairs.
func singleOpen(text []byte) bool { return bytes.Count(text, []byte(`'`))%2 == 1 }

// doubleOpen reports whether a scalar in double quotes continues.
func doubleOpen(text []byte) bool {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return false
		case '\\':
			i++
		}
	}
	return true
}

// singleQuoted converts a scalar in which only quotes are escaped, by doubling them.
func (o *jsonOutput) singleQuoted(text []byte) bool {
	if len(text) < len(`''`) || text[len(text)-1] != '\'' {
		return false
	}
	inner := text[1 : len(text)-1]
	if bytes.IndexByte(inner, '\'') >= 0 {
		pairs := bytes.Count(inner, []byte(`''`))
		if bytes.Count(inner, []byte(`'`)) != 2*pairs {
			return false
		}
		inner = bytes.ReplaceAll(inner, []byte(`''`), []byte(`'`))
	}
	o.quote(inner)
	return true
}

// doubleQuoted converts a scalar in which only quotes, backslashes and line ends are escaped.
func (o *jsonOutput) doubleQuoted(text []byte) bool {
	o.out = append(o.out, '"')
	for i := 1; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			o.out = append(o.out, '"')
			return i == len(text)-1
		case '\\':
			i++
			if i == len(text) || strings.IndexByte(`"\nt`, text[i]) < 0 {
				return false
			}
			o.out = append(o.out, '\\', text[i])
		default:
			o.out = append(o.out, c)
		}
	}
	return false
}

// quote appends a string.
func (o *jsonOutput) quote(text []byte) {
	o.out = append(o.out, '"')
	o.escape(text)
	o.out = append(o.out, '"')
}

// escape appends the text of a string.
func (o *jsonOutput) escape(text []byte) {
	for {
		i := bytes.IndexAny(text, `"\`)
		if i < 0 {
			o.out = append(o.out, text...)
			return
		}
		o.out = append(append(o.out, text[:i]...), '\\', text[i])
		text = text[i+1:]
	}
}

// literal converts the block of lines after a | in a collection with an indentation.
func (y *yamlText) literal(text []byte, indent int) bool {
	chomping, width, ok := literalHeader(text[1:], indent)
	if !ok {
		return false
	}
	y.out = append(y.out, '"')
	ends, ok := y.literalLines(indent, width)
	if !ok {
		return false
	}
	switch chomping {
	case "-":
		ends = 0
	case "":
		ends = min(ends, 1)
	}
	y.newlines(ends)
	y.out = append(y.out, '"')
	return true
}

// literalHeader parses the text after the | of a block: the treatment of the final line ends, and
// the indentation of its lines, which is zero if the first line determines it.
func literalHeader(text []byte, indent int) (chomping string, width int, ok bool) {
	if len(text) > 0 && '1' <= text[0] && text[0] <= '9' {
		text, width = text[1:], indent+int(text[0]-'0')
	}
	chomping = string(text)
	return chomping, width, chomping == "" || chomping == "-" || chomping == "+"
}

// literalLines converts the lines of a block and returns the number of line ends at its end. It
// does not support blocks without text.
func (y *yamlText) literalLines(indent, width int) (ends int, ok bool) {
	// Line ends are written only after it is known that they do not end the block.
	for ; y.at < len(y.text); y.skip() {
		line := y.line()
		if len(line) == 0 {
			ends++
			continue
		}
		found := indentation(line)
		if found == len(line) {
			return 0, false
		}
		if width == 0 {
			width = max(found, indent+1)
		}
		if found < width {
			return ends, ok && found <= indent
		}
		y.newlines(ends)
		ends, ok = 1, true
		y.escape(line[width:])
	}
	return ends, ok
}

// newlines appends line ends to the text of a string.
func (o *jsonOutput) newlines(count int) {
	for range count {
		o.out = append(o.out, `\n`...)
	}
}
