package constraint

import (
	"encoding/json"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

const (
	// partSteps and bytesPerStep are the cost of decoding a property: steps for each part, and bytes of text per
	// step.
	partSteps    = 15
	bytesPerStep = 4
)

// propertyCache caches properties as rules see them. Properties of many operators are decoded once, as far as there
// is room.
type propertyCache struct {
	decoded map[Property]ref.Val
	parts   int
}

// properties returns the properties of an operator; false if they are too large or invalid JSON.
func (c *propertyCache) properties(properties []Property, budget *share) (ref.Val, bool) {
	size, parts := 0, 0
	for _, p := range properties {
		if size += len(p.Type) + len(p.Value); size > maxValue {
			return nil, false
		}
	}
	list := make([]ref.Val, len(properties))
	for i, p := range properties {
		if known, ok := c.decoded[p]; ok {
			list[i] = known
			continue
		}
		count := countParts(p.Value)
		if parts += count; parts > maxValueNodes {
			return nil, false
		}
		budget.left -= partSteps*int64(count) + int64(len(p.Value))/bytesPerStep
		value, ok := read(p)
		if !ok {
			return nil, false
		}
		list[i] = value
		c.add(p, value, count)
	}
	return types.NewRefValList(types.DefaultTypeAdapter, list), true
}

// add caches a decoded property. The text counts too, so that long texts are bounded.
func (c *propertyCache) add(p Property, value ref.Val, parts int) {
	const textPerPart = 64
	if weight := parts + len(p.Value)/textPerPart; c.parts+weight <= maxCached {
		c.parts += weight
		c.decoded = with(c.decoded, p, value)
	}
}

// countParts returns the number of parts of a JSON value that take memory, without decoding it.
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

// valueOf converts decoded JSON. The values cache their sizes, unlike those that CEL would create from it.
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
