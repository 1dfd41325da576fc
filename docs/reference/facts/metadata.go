package facts

import (
	"errors"
	"fmt"
	"go/ast"
	"regexp"
	"strings"
)

// metadataPackage is the package that declares the names of labels, annotations and finalizers.
const metadataPackage = "supervisor/api"

// MetadataName is the name of a label, an annotation or a finalizer, as the comment of its constant
// describes it.
type MetadataName struct {
	// Section is the comment of the group of constants, without its full stop.
	Section string
	// Name has parts in capitals where they differ between objects.
	Name string
	// Kind is label, annotation or finalizer.
	Kind string
	// On, Value and SetBy are the fields of the comment. Value may be empty.
	On, Value, SetBy string
	// Meaning is the first paragraph of the comment, in Markdown.
	Meaning string
}

// errUndescribed is the error of a name whose comment lacks a part.
var errUndescribed = errors.New("the comment needs a sentence that begins with the constant's name, and the fields On and Set by")

// MetadataNames returns the names of supervisor/api, in the order of the source.
func (c *Code) MetadataNames() ([]MetadataName, error) {
	names, values := []MetadataName{}, map[string]string{}
	for _, p := range c.packages {
		if p.path != metadataPackage {
			continue
		}
		for _, group := range p.constants() {
			for _, spec := range group.specs {
				value, ok := p.text(spec.Values[0])
				if !ok || !ofOurs.MatchString(value) || value == prefixOfOurs {
					continue
				}
				name, err := described(spec, value)
				if err != nil {
					return nil, fmt.Errorf("%s.%s: %w", metadataPackage, spec.Names[0].Name, err)
				}
				name.Section = group.title
				names, values[spec.Names[0].Name] = append(names, name), value
			}
		}
	}
	for i := range names {
		names[i].Meaning = reference.ReplaceAllStringFunc(names[i].Meaning, func(ref string) string {
			if value := values[strings.Trim(ref, "[]")]; value != "" {
				return "`" + value + "`"
			}
			return ref
		})
	}
	return names, nil
}

// prefixOfOurs is the prefix of this project's names. It is not a name.
const prefixOfOurs = "chandlery.dev/"

// reference matches a reference to a constant in a comment. The page has no link for it.
var reference = regexp.MustCompile(`\[[A-Z]\w+\]`)

// constants is a group of constants with a comment.
type constants struct {
	title string
	specs []*ast.ValueSpec
}

func (p *pkg) constants() []constants {
	var groups []constants
	for _, file := range p.files {
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			group := constants{title: strings.TrimSuffix(strings.TrimSpace(decl.Doc.Text()), ".")}
			for _, s := range decl.Specs {
				if spec, ok := s.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
					group.specs = append(group.specs, spec)
				}
			}
			groups = append(groups, group)
		}
	}
	return groups
}

// described parses the comment of a constant.
func described(spec *ast.ValueSpec, value string) (MetadataName, error) {
	first, rest, _ := strings.Cut(spec.Doc.Text(), "\n\n")
	meaning, begins := strings.CutPrefix(strings.Join(strings.Fields(first), " "), spec.Names[0].Name+" ")
	n := MetadataName{Name: value}
	if !begins {
		return n, errUndescribed
	}
	n.Kind = kindOfName(spec.Names[0].Name, meaning)
	meaning = strings.TrimPrefix(strings.TrimPrefix(meaning, "is "), "begins ")
	n.Meaning = strings.ToUpper(meaning[:1]) + meaning[1:]
	fields := map[string]*string{"On": &n.On, "Value": &n.Value, "Set by": &n.SetBy, "Name": &n.Name}
	for line := range strings.Lines(rest) {
		key, text, _ := strings.Cut(line, ":")
		if field := fields[strings.TrimSpace(key)]; field != nil {
			*field = strings.TrimSpace(text)
		}
	}
	if n.On == "" || n.SetBy == "" {
		return n, errUndescribed
	}
	return n, nil
}

// kindOfName returns the kind of a constant. The constant's name begins with the kind; otherwise
// its meaning mentions it.
func kindOfName(constant, meaning string) string {
	for _, kind := range []string{"Label", "Annotation", "Finalizer"} {
		if strings.HasPrefix(constant, kind) {
			return strings.ToLower(kind)
		}
	}
	if strings.Contains(meaning, "label") {
		return "label"
	}
	return "annotation"
}
