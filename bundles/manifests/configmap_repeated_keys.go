package manifests

import (
	"fmt"

	"go.yaml.in/yaml/v2"
)

// repeatedKey is a key that a mapping has more than once.
type repeatedKey struct {
	// element is the position in the list, such as "[1]".
	element string
	// path is the path in the element, such as "spec.version".
	path string
}

// repeatedKeys returns the repeated keys of the mappings in a YAML list.
func repeatedKeys(text []byte) []repeatedKey {
	var list []yaml.MapSlice
	// The caller has decoded the text. An element that is no mapping is reported elsewhere.
	_ = yaml.Unmarshal(text, &list)
	var found []repeatedKey
	for i, element := range list {
		for _, path := range repeatedIn(element, "") {
			found = append(found, repeatedKey{element: fmt.Sprintf("[%d]", i), path: path})
		}
	}
	return found
}

// repeatedIn returns the paths of the repeated keys below a path.
func repeatedIn(value any, path string) []string {
	var found []string
	switch value := value.(type) {
	case yaml.MapSlice:
		seen := map[string]int{}
		for _, item := range value {
			// A key that is no scalar cannot be decoded as JSON.
			at := fmt.Sprint(item.Key)
			if path != "" {
				at = path + "." + at
			}
			seen[at]++
			if seen[at] == 2 {
				found = append(found, at)
			}
			found = append(found, repeatedIn(item.Value, at)...)
		}
	case []any:
		for i := range value {
			found = append(found, repeatedIn(value[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return found
}
