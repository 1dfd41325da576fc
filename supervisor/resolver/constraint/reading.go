package constraint

import (
	"encoding/json"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

const (
	// partSteps and bytesPerStep are what decoding a property is worth: for each
	// part of it and for its text.
	partSteps    = 15
	bytesPerStep = 4
)

// readings are properties as rules see them. What many operators have in common
// is decoded once, as far as there is room.
type readings struct {
	decoded map[Property]ref.Val
	held    int
}

// properties gives those of an operator; false when they are too large or no JSON.
func (r *readings) properties(properties []Property, paying *share) (ref.Val, bool) {
	size, parts := 0, 0
	for _, p := range properties {
		if size += len(p.Type) + len(p.Value); size > maxValue {
			return nil, false
		}
	}
	list := make([]ref.Val, len(properties))
	for i, p := range properties {
		if known, ok := r.decoded[p]; ok {
			list[i] = known
			continue
		}
		count := countParts(p.Value)
		if parts += count; parts > maxValueNodes {
			return nil, false
		}
		paying.left -= partSteps*int64(count) + int64(len(p.Value))/bytesPerStep
		value, ok := read(p)
		if !ok {
			return nil, false
		}
		list[i] = value
		r.hold(p, value, count)
	}
	return types.NewRefValList(types.DefaultTypeAdapter, list), true
}

// hold remembers what has been decoded. Texts count too: not to hold what is only
// a long one.
func (r *readings) hold(p Property, value ref.Val, parts int) {
	const textPerPart = 64
	if weight := parts + len(p.Value)/textPerPart; r.held+weight <= maxHeld {
		r.held += weight
		r.decoded = with(r.decoded, p, value)
	}
}

// countParts counts what the JSON of a value consists of, at least what of it
// takes memory, without decoding it.
func countParts(text string) int {
	parts, inString := 1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inString = !inString
		case inString:
			if c == '\\' {
				i++
			}
		case c == ',', c == '[', c == '{', c == ':':
			parts++
		}
	}
	return parts
}

// read decodes a property.
func read(p Property) (ref.Val, bool) {
	var decoded any
	if err := json.Unmarshal([]byte(p.Value), &decoded); err != nil {
		return nil, false
	}
	return types.NewRefValMap(types.DefaultTypeAdapter, map[ref.Val]ref.Val{
		types.String("type"): types.String(p.Type), types.String("value"): valueOf(decoded),
	}), true
}

// valueOf converts decoded JSON. The values remember their sizes, which those
// that CEL would make of it do not.
func valueOf(decoded any) ref.Val {
	switch v := decoded.(type) {
	case map[string]any:
		out := make(map[ref.Val]ref.Val, len(v))
		for key, value := range v {
			out[types.String(key)] = valueOf(value)
		}
		return types.NewRefValMap(types.DefaultTypeAdapter, out)
	case []any:
		out := make([]ref.Val, len(v))
		for i := range v {
			out[i] = valueOf(v[i])
		}
		return types.NewRefValList(types.DefaultTypeAdapter, out)
	default:
		return types.DefaultTypeAdapter.NativeToValue(v)
	}
}
