package dialtls

import (
	"fmt"
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandlery/chandlery/supervisor/api"
)

// Values of api.AnnotationTLS.
const (
	valueSystem    = "system"
	valueConfigMap = "configmap"
	valueSecret    = "secret"
	// kindConfigMap and kindSecret are the kinds of the objects with certificates.
	kindConfigMap = "ConfigMap"
	kindSecret    = "Secret"
	// keyCA is the default key of the authorities.
	keyCA = "ca.crt"
)

// Settings are how a CatalogSource connects to its address. The zero value is plain text.
type Settings struct {
	// Enabled is true if connections use TLS.
	Enabled bool
	// CA is the object with the authorities; the zero value for those of the system.
	CA Source
	// ClientSecret is the name of the Secret with the client certificate; empty for none.
	ClientSecret string
	// ServerName is the name to verify instead of the host of the address; empty for the host.
	ServerName string
}

// Source is a key of a ConfigMap or of a Secret in the namespace of the CatalogSource.
type Source struct {
	// Kind is ConfigMap or Secret.
	Kind string
	// Name is the name of the object, and Key the key in its data.
	Name, Key string
}

// String returns KIND NAME, key KEY.
func (s Source) String() string { return fmt.Sprintf("%s %s, key %s", s.Kind, s.Name, s.Key) }

// Parse returns the settings in the annotations of a CatalogSource.
func Parse(annotations map[string]string) (Settings, *Error) {
	get := func(name string) string { return strings.TrimSpace(annotations[name]) }
	s := Settings{ClientSecret: get(api.AnnotationTLSClientCertificate), ServerName: get(api.AnnotationTLSServerName)}
	value, enabled := annotations[api.AnnotationTLS]
	if !enabled {
		for _, other := range []string{api.AnnotationTLSClientCertificate, api.AnnotationTLSServerName} {
			if _, set := annotations[other]; set {
				s.Enabled = true // plain text is not what is wanted
				return s, invalid(other, get(other), "it has no effect without "+api.AnnotationTLS)
			}
		}
		return Settings{}, nil
	}
	s.Enabled = true
	var problem string
	if s.CA, problem = parseSource(strings.TrimSpace(value)); problem != "" {
		return s, invalid(api.AnnotationTLS, value, problem)
	}
	if s.ClientSecret != "" && len(validation.IsDNS1123Subdomain(s.ClientSecret)) > 0 {
		return s, invalid(api.AnnotationTLSClientCertificate, s.ClientSecret, "it is not the name of a Secret")
	}
	if s.ServerName != "" && len(validation.IsDNS1123Subdomain(s.ServerName)) > 0 && net.ParseIP(s.ServerName) == nil {
		return s, invalid(api.AnnotationTLSServerName, s.ServerName, "it is neither a host name nor an IP address")
	}
	return s, nil
}

func invalid(annotation, value, problem string) *Error {
	return failf(SettingsInvalid, nil, "the annotation %s is %q: %s", annotation, value, problem)
}

// parseSource returns the object in a value of api.AnnotationTLS, or what is wrong with the value.
func parseSource(value string) (source Source, problem string) {
	if value == valueSystem {
		return Source{}, ""
	}
	parts := strings.Split(value, "/")
	kind := map[string]string{valueConfigMap: kindConfigMap, valueSecret: kindSecret}[parts[0]]
	if kind == "" || len(parts) < 2 || len(parts) > 3 {
		return Source{}, "it has to be system, configmap/NAME or secret/NAME, with an optional /KEY"
	}
	source = Source{Kind: kind, Name: parts[1], Key: keyCA}
	if len(parts) == 3 {
		source.Key = parts[2]
	}
	if len(validation.IsDNS1123Subdomain(source.Name)) > 0 {
		return Source{}, fmt.Sprintf("%q is not the name of a %s", source.Name, kind)
	}
	if len(validation.IsConfigMapKey(source.Key)) > 0 {
		return Source{}, fmt.Sprintf("%q is not a key of a %s", source.Key, kind)
	}
	return source, ""
}
