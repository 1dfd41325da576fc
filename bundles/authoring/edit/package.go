package edit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/h2non/filetype"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"k8s.io/apimachinery/pkg/util/validation"
)

var (
	errPackageName = errors.New("is not the name of a package")
	errIcon        = errors.New("the icon is not an image; give a file in one of the formats SVG, PNG, JPEG and GIF")
	errNoDefault   = errors.New("the default channel has no name")
)

// NewPackage returns a package without bundles. The icon may be empty.
func NewPackage(name, channel, description string, icon []byte) (*declcfg.Package, error) {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return nil, fmt.Errorf("%q %w: %s", name, errPackageName, strings.Join(wrong, "; "))
	}
	if channel == "" {
		return nil, errNoDefault
	}
	pkg := &declcfg.Package{Schema: declcfg.SchemaPackage, Name: name, DefaultChannel: channel, Description: description}
	if len(icon) == 0 {
		return pkg, nil
	}
	kind, err := filetype.Match(icon)
	if err != nil || kind.MIME.Type != "image" {
		return nil, errIcon
	}
	pkg.Icon = &declcfg.Icon{Data: icon, MediaType: kind.MIME.Value}
	return pkg, nil
}
