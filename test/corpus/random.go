package corpus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// The numbers of random catalogs of each base and encoding.
const (
	structuralCount = 40
	textualCount    = 40
)

// seed makes the random catalogs reproducible. Any other value will do.
const seed = 20

// structural returns catalogs in which a value at a random position was replaced, removed or duplicated.
func structural() []Catalog {
	var out []Catalog
	for _, b := range bases() {
		random := rand.New(rand.NewPCG(seed, uint64(len(b.objects))))
		for i := range structuralCount {
			objects := clone(b.objects)
			for range 1 + random.IntN(2) {
				objects = mutate(random, objects)
			}
			e := encodings()[i%2]
			out = append(out, Catalog{Name: fmt.Sprintf("Structural/%s/%d/%s", b.name, i, e.name), Files: e.encode(objects)})
		}
	}
	return out
}

func clone(objects []object) []object {
	var out []object
	decoder := json.NewDecoder(bytes.NewReader(asJSON(objects)))
	if err := decoder.Decode(&out); err != nil {
		panic(err) //nolint:forbidigo // a mistake in this package
	}
	return out
}

// place is a value in an object or a list, with a function that replaces it.
type place struct {
	value   any
	replace func(any)
	remove  func()
}

// places returns every value below a value, in a fixed order.
func places(value any, replace func(any)) []place {
	var out []place
	switch v := value.(type) {
	case object:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, place{value: v[key], replace: func(n any) { v[key] = n }, remove: func() { delete(v, key) }})
			out = append(out, places(v[key], func(n any) { v[key] = n })...)
		}
	case []any:
		for i := range v {
			out = append(out, place{
				value: v[i], replace: func(n any) { v[i] = n },
				remove: func() { replace(slices.Delete(slices.Clone(v), i, i+1)) },
			})
			out = append(out, places(v[i], func(n any) { v[i] = n })...)
		}
	}
	return out
}

// mutate makes one random change.
func mutate(random *rand.Rand, objects []object) []object {
	if random.IntN(10) == 0 {
		at := random.IntN(len(objects))
		if random.IntN(2) == 0 && len(objects) > 1 {
			return slices.Delete(objects, at, at+1)
		}
		return append(objects, clone(objects[at:at+1])...)
	}
	at := random.IntN(len(objects))
	all := places(objects[at], func(any) {})
	if len(all) == 0 {
		return objects
	}
	p := all[random.IntN(len(all))]
	if random.IntN(4) == 0 {
		p.remove()
		return objects
	}
	p.replace(other(random, p.value, objects))
	return objects
}

// other returns a replacement for a value.
func other(random *rand.Rand, value any, objects []object) any {
	kinds := []any{nil, "", "x", 0, 3.5, true, []any{}, []any{""}, object{}, "1.0.0", object{"name": "x"}}
	if random.IntN(2) == 0 {
		return kinds[random.IntN(len(kinds))]
	}
	// Use another value of the catalog, because colliding names are interesting.
	all := places(clone(objects)[random.IntN(len(objects))], func(any) {})
	if len(all) == 0 {
		return value
	}
	return all[random.IntN(len(all))].value
}

// textual returns catalogs whose text was damaged at a random position.
func textual() []Catalog {
	var out []Catalog
	for _, b := range bases() {
		for e, layout := range encodings() {
			random := rand.New(rand.NewPCG(seed, uint64(100*e+len(b.objects))))
			for i := range textualCount {
				files := layout.encode(b.objects)
				for name, text := range files {
					files[name] = damage(random, text)
				}
				out = append(out, Catalog{Name: fmt.Sprintf("Textual/%s/%d/%s", b.name, i, layout.name), Files: files})
			}
		}
	}
	return out
}

// damage changes a few bytes or lines.
func damage(random *rand.Rand, text []byte) []byte {
	at := random.IntN(len(text))
	lines := bytes.SplitAfter(text, []byte("\n"))
	line := random.IntN(len(lines))
	switch random.IntN(7) {
	case 0:
		return slices.Delete(slices.Clone(text), at, at+1)
	case 1:
		marks := []string{"{", "}", "[", "]", ",", ":", "\"", "'", "#", "-", "&", "*", "!", "|", "\t", "\n", " ", "%", "\\", "---\n", "...\n"}
		return slices.Insert(slices.Clone(text), at, []byte(marks[random.IntN(len(marks))])...)
	case 2:
		return text[:at]
	case 3:
		return bytes.Join(slices.Delete(slices.Clone(lines), line, line+1), nil)
	case 4:
		return bytes.Join(slices.Insert(slices.Clone(lines), line, lines[line]), nil)
	case 5:
		next := (line + 1) % len(lines)
		lines[line], lines[next] = lines[next], lines[line]
		return bytes.Join(lines, nil)
	default:
		return bytes.Join(slices.Insert(slices.Clone(lines), line, []byte("  ")), nil)
	}
}
