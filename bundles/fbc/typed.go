package fbc

import (
	"bytes"
	"encoding/base64"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/internal/jsontext"
)

// typed decodes objects of the known schemas directly from their text. It normalizes property
// values on the way and finds other fields by their keys. Like [normalizer], it gives up on rare
// but valid JSON: keys in another case, null, and values of a wrong type.
type typed struct {
	normalizer
}

// The fields of each object, in the order in which [jsonText.fields] reports them.
var (
	packageFields     = []string{"schema", "name", "defaultChannel", "icon", "description", "properties"}
	iconFields        = []string{"base64data", "mediatype"}
	channelFields     = []string{"schema", "name", "package", "entries", "properties"}
	entryFields       = []string{"name", "replaces", "skips", "skipRange"}
	bundleFields      = []string{"schema", "name", "package", "image", "properties", "relatedImages"}
	propertyFields    = []string{"type", "value"}
	imageFields       = []string{"name", "image"}
	deprecationFields = []string{"schema", "package", "entries"}
	deprecatedFields  = []string{"reference", "message"}
	referenceFields   = []string{"schema", "name"}
	customFields      = []string{"schema", "package", "name"}
)

// decode returns the object in text and reports whether it could decode it. The result does not refer to text.
func (t *typed) decode(text []byte, head header, origin bundles.Origin) (object, bool) {
	t.normalizer = normalizer{text: text, out: t.out[:0], members: t.members[:0], sorted: t.sorted[:0]}
	var (
		out object
		got header
		end int
	)
	switch head.schema {
	case bundles.SchemaPackage:
		out.pkg = &bundles.Package{Origin: origin}
		end = t.pkg(&got, out.pkg)
	case bundles.SchemaChannel:
		out.channel = &bundles.Channel{Origin: origin}
		end = t.channel(&got, out.channel)
	case bundles.SchemaBundle:
		out.bundle = &bundles.Bundle{Origin: origin}
		end = t.bundle(&got, out.bundle)
	case bundles.SchemaDeprecations:
		out.deprecations = &deprecations{list: bundles.DeprecationList{Origin: origin}}
		end = t.deprecations(&got, out.deprecations)
	default:
		out.custom = &bundles.Custom{Schema: head.schema, Package: head.pkg, Name: head.name, Origin: origin}
		end = t.custom(&got, out.custom)
	}
	if end != len(text) {
		return object{}, false
	}
	// Packages and deprecations lack one of these fields.
	if got.schema != head.schema || (got.name != head.name && out.deprecations == nil) || (got.pkg != head.pkg && out.pkg == nil) {
		return object{}, false
	}
	return out, true
}

func (t *typed) pkg(head *header, p *bundles.Package) int {
	end := t.text.fields(0, packageFields, func(field, i int) int {
		switch field {
		case 0:
			return t.text.name(i, &head.schema)
		case 1:
			return t.text.name(i, &head.name)
		case 2:
			return t.text.name(i, &p.DefaultChannel)
		case 3:
			p.Icon = &bundles.Icon{}
			return t.icon(i, p.Icon)
		case 4:
			return t.text.name(i, &p.Description)
		default:
			return t.properties(i, new([]bundles.Property))
		}
	})
	p.Name = head.name
	return end
}

func (t *typed) icon(i int, icon *bundles.Icon) int {
	return t.text.fields(i, iconFields, func(field, i int) int {
		if field == 1 {
			return t.text.name(i, &icon.MediaType)
		}
		end := t.text.quoted(i)
		if end == jsontext.Broken {
			return jsontext.Broken
		}
		data, err := base64.StdEncoding.AppendDecode(make([]byte, 0, base64.StdEncoding.DecodedLen(end-i-2)), t.text[i+1:end-1])
		if err != nil {
			return jsontext.Broken
		}
		icon.Data = data
		return end
	})
}

func (t *typed) channel(head *header, ch *bundles.Channel) int {
	end := t.text.fields(0, channelFields, func(field, i int) int {
		switch field {
		case 0:
			return t.text.name(i, &head.schema)
		case 1:
			return t.text.name(i, &head.name)
		case 2:
			return t.text.name(i, &head.pkg)
		case 3:
			ch.Entries = []bundles.Entry{}
			return t.text.elements(i, func(i int) int {
				ch.Entries = append(ch.Entries, bundles.Entry{})
				return t.entry(i, &ch.Entries[len(ch.Entries)-1])
			})
		default:
			return t.properties(i, new([]bundles.Property))
		}
	})
	ch.Name, ch.Package = head.name, head.pkg
	return end
}

func (t *typed) entry(i int, e *bundles.Entry) int {
	return t.text.fields(i, entryFields, func(field, i int) int {
		switch field {
		case 0:
			return t.text.name(i, &e.Name)
		case 1:
			return t.text.name(i, &e.Replaces)
		case 2:
			e.Skips = []string{}
			return t.text.elements(i, func(i int) int {
				e.Skips = append(e.Skips, "")
				return t.text.name(i, &e.Skips[len(e.Skips)-1])
			})
		default:
			return t.text.name(i, &e.SkipRange)
		}
	})
}

func (t *typed) bundle(head *header, b *bundles.Bundle) int {
	end := t.text.fields(0, bundleFields, func(field, i int) int {
		switch field {
		case 0:
			return t.text.name(i, &head.schema)
		case 1:
			return t.text.name(i, &head.name)
		case 2:
			return t.text.name(i, &head.pkg)
		case 3:
			return t.text.name(i, &b.Image)
		case 4:
			return t.properties(i, &b.Properties)
		default:
			b.RelatedImages = []bundles.RelatedImage{}
			return t.text.elements(i, func(i int) int {
				b.RelatedImages = append(b.RelatedImages, bundles.RelatedImage{})
				return t.image(i, &b.RelatedImages[len(b.RelatedImages)-1])
			})
		}
	})
	b.Name, b.Package = head.name, head.pkg
	return end
}

func (t *typed) image(i int, image *bundles.RelatedImage) int {
	return t.text.fields(i, imageFields, func(field, i int) int {
		if field == 0 {
			return t.text.name(i, &image.Name)
		}
		return t.text.name(i, &image.Image)
	})
}

// properties decodes a list of properties. Their values share one allocation.
func (t *typed) properties(i int, to *[]bundles.Property) int {
	var ends []int
	begin := len(t.out)
	*to = []bundles.Property{}
	end := t.text.elements(i, func(i int) int {
		*to = append(*to, bundles.Property{})
		i = t.property(i, &(*to)[len(*to)-1])
		ends = append(ends, len(t.out)-begin)
		return i
	})
	values := bytes.Clone(t.out[begin:])
	t.out = t.out[:begin]
	from := 0
	for p := range *to {
		if ends[p] > from {
			(*to)[p].Value = values[from:ends[p]:ends[p]]
		}
		from = ends[p]
	}
	return end
}

func (t *typed) property(i int, p *bundles.Property) int {
	return t.text.fields(i, propertyFields, func(field, i int) int {
		if field == 0 {
			return t.text.name(i, &p.Type)
		}
		return t.value(i)
	})
}

func (t *typed) deprecations(head *header, d *deprecations) int {
	end := t.text.fields(0, deprecationFields, func(field, i int) int {
		switch field {
		case 0:
			return t.text.name(i, &head.schema)
		case 1:
			return t.text.name(i, &head.pkg)
		default:
			d.list.Entries = []bundles.Deprecation{}
			return t.text.elements(i, func(i int) int {
				d.list.Entries = append(d.list.Entries, bundles.Deprecation{})
				return t.deprecated(i, &d.list.Entries[len(d.list.Entries)-1])
			})
		}
	})
	d.pkg = head.pkg
	return end
}

func (t *typed) deprecated(i int, d *bundles.Deprecation) int {
	return t.text.fields(i, deprecatedFields, func(field, i int) int {
		if field == 1 {
			return t.text.name(i, &d.Message)
		}
		return t.text.fields(i, referenceFields, func(field, i int) int {
			if field == 0 {
				return t.text.name(i, &d.Reference.Schema)
			}
			return t.text.name(i, &d.Reference.Name)
		})
	})
}

func (t *typed) custom(head *header, c *bundles.Custom) int {
	end := t.text.fields(0, customFields, func(field, i int) int {
		return t.text.name(i, [...]*string{&head.schema, &head.pkg, &head.name}[field])
	})
	if end == jsontext.Broken || t.value(0) != end {
		return jsontext.Broken
	}
	c.Blob = bytes.Clone(t.out)
	return end
}
