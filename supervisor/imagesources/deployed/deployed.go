// Package deployed finds out how the supervisor of a cluster pulls images, from the Deployment that runs it.
package deployed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/supervisor/imagesources"
)

// nameLabel and name select the Deployments of supervisors.
const (
	nameLabel = "app.kubernetes.io/name"
	name      = "chandlery-supervisor"
)

// rootsKey is the key of a ConfigMap with certificates to trust for all registries.
const rootsKey = "ca-bundle.crt"

// ErrNone means that no Deployment runs a supervisor.
var ErrNone = errors.New("no Deployment with label " + nameLabel + "=" + name)

var errUnsupported = errors.New("cannot be read from here; copy the files and pass them with the same flag")

// Supervisor is how a supervisor pulls images.
type Supervisor struct {
	*imagesources.Settings

	// PlainHTTP and SkipTLSVerify are its flags for all registries.
	PlainHTTP, SkipTLSVerify bool
	// From names the Deployment.
	From string
	// Verification has the files with rules for signatures, and Origin names the objects that hold them.
	Verification map[string][]byte
	Origin       string
	// OpenShift is true if it applies policies of OpenShift for images.
	OpenShift bool
}

// Read returns how the supervisor in a namespace pulls images. The error wraps [ErrNone] if there is no Deployment.
func Read(ctx context.Context, reader client.Reader, namespace string) (*Supervisor, error) {
	found := &appsv1.DeploymentList{}
	if err := reader.List(ctx, found, client.InNamespace(namespace), client.MatchingLabels{nameLabel: name}); err != nil {
		return nil, fmt.Errorf("listing Deployments in namespace %s: %w", namespace, err)
	}
	if len(found.Items) == 0 {
		return nil, fmt.Errorf("%w in namespace %s", ErrNone, namespace)
	}
	from := "Deployment " + namespace + "/" + found.Items[0].Name
	supervisor, err := read(ctx, reader, namespace, &found.Items[0].Spec.Template.Spec)
	if err != nil {
		return nil, fmt.Errorf("image settings of %s: %w", from, err)
	}
	supervisor.From = from
	return supervisor, nil
}

func read(ctx context.Context, reader client.Reader, namespace string, pod *corev1.PodSpec) (*Supervisor, error) {
	if len(pod.Containers) == 0 {
		return nil, ErrNone
	}
	f, err := parse(pod.Containers[0].Args)
	if err != nil {
		return nil, err
	}
	files := &mounted{reader: reader, namespace: namespace, pod: pod}
	keys, origin, err := f.read(ctx, files)
	if err != nil {
		return nil, err
	}
	table, err := tableOf(origin, keys)
	if err != nil {
		return nil, err
	}
	settings := imagesources.NewFixed(table, f.sharedSecrets())
	if f.openShift != discovery.Disabled {
		// The log of the supervisor is not the log of this program.
		quiet := log.IntoContext(ctx, logr.Discard())
		settings.Found(quiet, reader, discovery.Result{Verdict: discovery.Verdict{Outcome: discovery.Installed}})
		if problem := settings.Problem(); problem != "" {
			return nil, errors.New(problem) //nolint:err113 // it names the objects
		}
	}
	return &Supervisor{
		Settings: settings, PlainHTTP: f.plainHTTP, SkipTLSVerify: f.skipTLSVerify,
		Verification: verificationIn(keys), Origin: origin, OpenShift: f.openShift != discovery.Disabled,
	}, nil
}

// flags are the flags of a supervisor that concern images.
type flags struct {
	paths                    sources.Paths
	pullSecrets              []string
	plainHTTP, skipTLSVerify bool
	openShift                discovery.Setting
}

// parse returns the flags in the arguments of a container.
func parse(args []string) (*flags, error) {
	f := &flags{}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.ParseErrorsAllowlist.UnknownFlags = true
	f.paths.AddFlags(set)
	set.StringVar(&f.paths.CA, "image-ca", "", "")
	set.StringSliceVar(&f.pullSecrets, "image-pull-secrets", nil, "")
	set.BoolVar(&f.plainHTTP, "image-plain-http", false, "")
	set.BoolVar(&f.skipTLSVerify, "image-skip-tls-verify", false, "")
	set.Var(&f.openShift, "openshift", "")
	if err := set.Parse(args); err != nil {
		return nil, fmt.Errorf("arguments of the container: %w", err)
	}
	for flag, value := range map[string]string{
		"--image-registries-conf": f.paths.RegistriesConf, "--image-certs-dir": strings.Join(f.paths.CertsDirs, ","),
	} {
		if value != "" {
			return nil, fmt.Errorf("%s=%s %w", flag, value, errUnsupported)
		}
	}
	return f, nil
}

// sharedSecrets returns the Secrets for the images of all catalogs.
func (f *flags) sharedSecrets() []types.NamespacedName {
	var all []types.NamespacedName
	for _, text := range f.pullSecrets {
		if namespace, secret, ok := strings.Cut(text, "/"); ok {
			all = append(all, types.NamespacedName{Namespace: namespace, Name: secret})
		}
	}
	return all
}

// read returns the files of the flags, and the objects that hold them.
func (f *flags) read(ctx context.Context, files *mounted) (keys map[string][]byte, origin string, err error) {
	keys, origin = map[string][]byte{}, "the supervisor's settings"
	if f.paths.Config != "" {
		if keys, origin, err = files.dir(ctx, f.paths.Config); err != nil {
			return nil, "", fmt.Errorf("--image-config=%s %w", f.paths.Config, err)
		}
	}
	if f.paths.CA != "" {
		found, _, err := files.dir(ctx, path.Dir(f.paths.CA))
		if err != nil {
			return nil, "", fmt.Errorf("--image-ca=%s %w", f.paths.CA, err)
		}
		keys[rootsKey] = slices.Concat(keys[rootsKey], []byte("\n"), found[path.Base(f.paths.CA)])
	}
	return keys, origin, nil
}

// verificationIn returns the files with rules for signatures. Those in other directories do not count.
func verificationIn(keys map[string][]byte) map[string][]byte {
	found := maps.Clone(keys)
	maps.DeleteFunc(found, func(key string, _ []byte) bool { return !sources.IsForSignatures(key) || path.Base(key) != key })
	return found
}

// tableOf returns the rules in files; nil if there are none.
func tableOf(origin string, keys map[string][]byte) (*sources.Table, error) {
	if len(keys) == 0 {
		return nil, nil //nolint:nilnil // Absence is an answer here, and documented.
	}
	return sources.Parse(origin, keys) //nolint:wrapcheck // names the object
}

// mounted reads the files of ConfigMaps and Secrets that a pod mounts.
type mounted struct {
	reader    client.Reader
	namespace string
	pod       *corev1.PodSpec
}

// dir returns the files in a directory where a volume is mounted, and the objects that hold them.
func (m *mounted) dir(ctx context.Context, dir string) (files map[string][]byte, origin string, err error) {
	mounts := m.pod.Containers[0].VolumeMounts
	i := slices.IndexFunc(mounts, func(v corev1.VolumeMount) bool { return path.Clean(v.MountPath) == path.Clean(dir) && v.SubPath == "" })
	if i < 0 {
		return nil, "", errUnsupported
	}
	j := slices.IndexFunc(m.pod.Volumes, func(v corev1.Volume) bool { return v.Name == mounts[i].Name })
	if j < 0 {
		return nil, "", errUnsupported
	}
	parts := partsOf(&m.pod.Volumes[j])
	if len(parts) == 0 {
		return nil, "", errUnsupported
	}
	files = map[string][]byte{}
	var origins []string
	for _, part := range parts {
		found, err := m.read(ctx, part)
		if err != nil {
			return nil, "", err
		}
		maps.Copy(files, found)
		origins = append(origins, part.kind+" "+m.namespace+"/"+part.name)
	}
	return files, strings.Join(origins, " and "), nil
}

// The kinds of objects whose keys are files.
const (
	kindConfigMap = "ConfigMap"
	kindSecret    = "Secret"
)

// part is an object whose keys are files of a volume.
type part struct {
	kind, name string
	items      []corev1.KeyToPath
	optional   *bool
}

// partsOf returns the objects of a volume; none if it has files of another kind.
func partsOf(v *corev1.Volume) []part {
	switch {
	case v.ConfigMap != nil:
		return []part{{kindConfigMap, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional}}
	case v.Secret != nil:
		return []part{{kindSecret, v.Secret.SecretName, v.Secret.Items, v.Secret.Optional}}
	case v.Projected == nil:
		return nil
	}
	var parts []part
	for _, source := range v.Projected.Sources {
		switch {
		case source.ConfigMap != nil:
			parts = append(parts, part{kindConfigMap, source.ConfigMap.Name, source.ConfigMap.Items, source.ConfigMap.Optional})
		case source.Secret != nil:
			parts = append(parts, part{kindSecret, source.Secret.Name, source.Secret.Items, source.Secret.Optional})
		default:
			return nil
		}
	}
	return parts
}

// read returns the files of an object; none if it is optional and does not exist.
func (m *mounted) read(ctx context.Context, p part) (map[string][]byte, error) {
	keys, err := m.keys(ctx, p)
	isOptional := p.optional != nil && *p.optional
	if apierrors.IsNotFound(err) && isOptional {
		return map[string][]byte{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", p.kind, m.namespace, p.name, err)
	}
	if len(p.items) == 0 {
		return keys, nil
	}
	files := map[string][]byte{}
	for _, item := range p.items {
		if data, ok := keys[item.Key]; ok {
			files[item.Path] = data
		}
	}
	return files, nil
}

// keys returns the content of an object.
func (m *mounted) keys(ctx context.Context, p part) (map[string][]byte, error) {
	key := types.NamespacedName{Namespace: m.namespace, Name: p.name}
	if p.kind == kindSecret {
		object := &corev1.Secret{}
		err := m.reader.Get(ctx, key, object)
		return maps.Clone(object.Data), err //nolint:wrapcheck // the caller names the object
	}
	object := &corev1.ConfigMap{}
	err := m.reader.Get(ctx, key, object)
	keys := maps.Clone(object.BinaryData)
	if keys == nil {
		keys = map[string][]byte{}
	}
	for name, text := range object.Data {
		keys[name] = []byte(text)
	}
	return keys, err //nolint:wrapcheck // the caller names the object
}
