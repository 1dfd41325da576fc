package catalogfile

import (
	"fmt"
	"strings"
)

// Step is one step from a value to a value in it: a field of an object or an element of a
// list.
type Step struct {
	key     string
	index   int
	element bool
}

// Field returns the step to a field of an object.
func Field(name string) Step { return Step{key: name} }

// Element returns the step to an element of a list. The index counts from zero.
func Element(index int) Step { return Step{index: index, element: true} }

// Path is the path from a document to a value in it.
type Path []Step

// Fields returns the path of fields of those names.
func Fields(names ...string) Path {
	path := make(Path, len(names))
	for i, name := range names {
		path[i] = Field(name)
	}
	return path
}

// Then returns the path with more steps.
func (p Path) Then(steps ...Step) Path { return append(append(Path{}, p...), steps...) }

// String returns the path as in "entries[2].name".
func (p Path) String() string {
	var text strings.Builder
	for i, step := range p {
		switch {
		case step.element:
			fmt.Fprintf(&text, "[%d]", step.index)
		case i == 0:
			text.WriteString(step.key)
		default:
			text.WriteString("." + step.key)
		}
	}
	return text.String()
}
