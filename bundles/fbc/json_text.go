package fbc

import (
	"bytes"
	"encoding/json"

	"github.com/chandlery/chandlery/bundles/internal/jsontext"
)

// jsonText is a JSON text that is decoded from positions in it. Its methods return the position after a value, or
// [jsontext.Broken].
type jsonText []byte

// fields calls visit with each of the known fields of the object at i: its index in known and the
// start of its value. visit returns the end of the value. Other fields are skipped.
func (t jsonText) fields(i int, known []string, visit func(field, i int) int) int {
	if i >= len(t) || t[i] != '{' {
		return jsontext.Broken
	}
	i = jsontext.SkipSpace(t, i+1)
	if i < len(t) && t[i] == '}' {
		return i + 1
	}
	for seen := 0; ; {
		begin := i + 1
		end, value := jsontext.KeyEnd(t, i)
		if end == jsontext.Broken {
			return jsontext.Broken
		}
		switch field := jsontext.Find(known, t[begin:end-1]); {
		case field == jsontext.Unsure, field >= 0 && seen&(1<<field) != 0:
			return jsontext.Broken
		case field == jsontext.Unknown:
			s := jsontext.Scanner{Text: t}
			i = s.Value(value)
		default:
			seen |= 1 << field
			i = visit(field, value)
		}
		var closed bool
		if i, closed = jsontext.Next(t, i, '}'); closed {
			return i + 1
		}
		if i == jsontext.Broken {
			return jsontext.Broken
		}
	}
}

// elements calls visit with each element of the list at i.
func (t jsonText) elements(i int, visit func(i int) int) int {
	if i >= len(t) || t[i] != '[' {
		return jsontext.Broken
	}
	i = jsontext.SkipSpace(t, i+1)
	if i < len(t) && t[i] == ']' {
		return i + 1
	}
	for {
		var closed bool
		if i, closed = jsontext.Next(t, visit(i), ']'); closed {
			return i + 1
		}
		if i == jsontext.Broken {
			return jsontext.Broken
		}
	}
}

// quoted returns the end of the string at i.
func (t jsonText) quoted(i int) int {
	if i >= len(t) || t[i] != '"' {
		return jsontext.Broken
	}
	return jsontext.StringEnd(t, i)
}

// name decodes the string at i.
func (t jsonText) name(i int, to *string) int {
	end := t.quoted(i)
	if end == jsontext.Broken {
		return jsontext.Broken
	}
	inner := t[i+1 : end-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		*to = string(inner)
		return end
	}
	if json.Unmarshal(t[i:end], to) != nil {
		return jsontext.Broken
	}
	return end
}
