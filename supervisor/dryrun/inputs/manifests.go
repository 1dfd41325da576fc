package inputs

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/subscription"
)

// Objects are the objects that a dry run depends on.
type Objects struct {
	Subscriptions []*operatorsv1alpha1.Subscription
	Versions      []*operatorsv1alpha1.ClusterServiceVersion
	Plans         []*operatorsv1alpha1.InstallPlan
	Groups        []*operatorsv1.OperatorGroup
	Catalogs      []*operatorsv1alpha1.CatalogSource
	// Notes are remarks on what was read.
	Notes []string
}

// maxFile is the maximum size of a file, in bytes.
const maxFile = 256 << 20

// errTooLarge means that a file is too large to be a manifest.
var errTooLarge = fmt.Errorf("the file has more than %d MiB", maxFile>>20)

// Read reads the objects in a YAML or JSON file with one or several documents and Lists. Errors contain the
// name. Objects without a namespace get the given one.
func (o *Objects) Read(name string, from io.Reader, namespace string) error {
	text, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = errTooLarge
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	f := &file{objects: o, name: name, namespace: namespace}
	for f.document = 1; ; f.document++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = f.read(document)
		}
		if err != nil {
			return fmt.Errorf("%s, document %d: %w", name, f.document, err)
		}
	}
	if f.found == 0 {
		return fmt.Errorf("%s holds no object; it has to be YAML or JSON with a Subscription", name)
	}
	o.Notes = append(o.Notes, f.notes()...)
	return nil
}

// file is the state of reading a file.
type file struct {
	objects         *Objects
	name, namespace string
	document, found int
	ignored         []string
}

// notes returns remarks on ignored content.
func (f *file) notes() []string {
	if len(f.ignored) == 0 {
		return nil
	}
	return []string{f.name + ": ignored " + strings.Join(f.ignored, ", ") + "; only kinds of operators.coreos.com matter here"}
}

// read reads a document.
func (f *file) read(document []byte) error {
	text, err := sigsyaml.YAMLToJSON(document)
	if err != nil {
		return fmt.Errorf("not YAML: %w", err)
	}
	if string(text) == "null" {
		return nil
	}
	u := &unstructured.Unstructured{}
	if err := json.UnmarshalCaseSensitivePreserveInts(text, &u.Object); err != nil {
		return errors.New("not an object; it has to begin with apiVersion and kind")
	}
	return f.readObject(u)
}

// readObject reads an object, or the objects of a List.
func (f *file) readObject(u *unstructured.Unstructured) error {
	if u.GetKind() == "" || u.GetAPIVersion() == "" {
		return errors.New("an object without kind or apiVersion; add both, for instance apiVersion: operators.coreos.com/v1alpha1, kind: Subscription")
	}
	items, isList, err := unstructured.NestedSlice(u.Object, "items")
	if isList && err == nil && strings.HasSuffix(u.GetKind(), "List") {
		f.found++
		for i, item := range items {
			object, ok := item.(map[string]any)
			if !ok {
				return fmt.Errorf("items[%d] is not an object", i)
			}
			if err := f.readObject(&unstructured.Unstructured{Object: object}); err != nil {
				return fmt.Errorf("items[%d]: %w", i, err)
			}
		}
		return nil
	}
	f.found++
	if u.GetNamespace() == "" {
		u.SetNamespace(f.namespace)
	}
	if err := f.add(u); err != nil {
		return fmt.Errorf("%s %s: %w", u.GetKind(), cmp.Or(u.GetName(), "without metadata.name"), err)
	}
	return nil
}

// add adds an object to the objects of its kind.
func (f *file) add(u *unstructured.Unstructured) error {
	group, _, _ := strings.Cut(u.GetAPIVersion(), "/")
	kind := u.GetKind()
	if group != operatorsv1alpha1.GroupName {
		kind = ""
	}
	if kind != "" && u.GetName() == "" {
		return errors.New("metadata.name is missing; name the object")
	}
	o := f.objects
	switch kind {
	case operatorsv1alpha1.SubscriptionKind:
		sub, err := decode[operatorsv1alpha1.Subscription](f, u)
		if err == nil {
			err = check(sub)
		}
		o.Subscriptions = append(o.Subscriptions, sub)
		return err
	case operatorsv1alpha1.ClusterServiceVersionKind:
		csv, err := decode[operatorsv1alpha1.ClusterServiceVersion](f, u)
		if err == nil && csv.Status.Phase == operatorsv1alpha1.CSVPhaseNone {
			// A version without a phase in a file counts as installed.
			csv.Status.Phase = operatorsv1alpha1.CSVPhaseSucceeded
		}
		o.Versions = append(o.Versions, csv)
		return err
	case operatorsv1alpha1.InstallPlanKind:
		plan, err := decode[operatorsv1alpha1.InstallPlan](f, u)
		o.Plans = append(o.Plans, plan)
		return err
	case operatorsv1.OperatorGroupKind:
		operatorGroup, err := decode[operatorsv1.OperatorGroup](f, u)
		o.Groups = append(o.Groups, operatorGroup)
		return err
	case operatorsv1alpha1.CatalogSourceKind:
		source, err := catalogs.Decode(u)
		o.Catalogs = append(o.Catalogs, source)
		return err //nolint:wrapcheck // names the object
	default:
		f.ignored = append(f.ignored, u.GetKind()+" "+u.GetName())
		return nil
	}
}

// decode decodes an object of a kind. Fields that the kind does not have are noted, because most are typing
// errors.
func decode[T any](f *file, u *unstructured.Unstructured) (*T, error) {
	text, err := u.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	object := new(T)
	strict, err := json.UnmarshalStrict(text, object)
	if err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	for _, problem := range strict {
		f.objects.Notes = append(f.objects.Notes, fmt.Sprintf("%s: %s %s: %v; the API server would drop it", f.name, u.GetKind(), u.GetName(), problem))
	}
	return object, nil
}

// check returns an error for a missing field of a Subscription.
func check(sub *operatorsv1alpha1.Subscription) error {
	if sub.Spec == nil {
		return errors.New("spec is missing; add spec.name, spec.source and spec.sourceNamespace")
	}
	var problems []error
	require := func(value, field, remedy string) {
		if value == "" {
			problems = append(problems, fmt.Errorf("%s is missing; %s", field, remedy))
		}
	}
	require(sub.Spec.Package, "spec.name", "set it to the name of the package")
	require(sub.Spec.CatalogSource, "spec.source", "set it to the name of the CatalogSource")
	require(sub.Spec.CatalogSourceNamespace, "spec.sourceNamespace", "set it to the namespace of the CatalogSource")
	approvals := []operatorsv1alpha1.Approval{"", operatorsv1alpha1.ApprovalAutomatic, operatorsv1alpha1.ApprovalManual}
	if !slices.Contains(approvals, sub.Spec.InstallPlanApproval) {
		problems = append(problems, fmt.Errorf("spec.installPlanApproval is %q; set it to Automatic or Manual", sub.Spec.InstallPlanApproval))
	}
	for _, problem := range validation.IsDNS1123Label(sub.Namespace) {
		problems = append(problems, fmt.Errorf("metadata.namespace is %q: %s", sub.Namespace, problem))
	}
	return errors.Join(problems...)
}

// namespaces returns the namespaces of the Subscriptions, sorted.
func (o *Objects) namespaces() []string {
	var out []string
	for _, sub := range o.Subscriptions {
		out = append(out, sub.Namespace)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// empty reports whether a namespace has none of these objects.
func (o *Objects) empty(namespace string) bool {
	own := o.within(namespace, namespace)
	return len(own.Subscriptions)+len(own.Versions)+len(own.Plans)+len(own.Groups)+len(own.Catalogs) == 0
}

// within returns the objects that a namespace depends on: its own, and the CatalogSources of the global
// namespace.
func (o *Objects) within(namespace, global string) *Objects {
	return &Objects{
		Subscriptions: filter(o.Subscriptions, func(s *operatorsv1alpha1.Subscription) bool { return s.Namespace == namespace }),
		Versions:      filter(o.Versions, func(c *operatorsv1alpha1.ClusterServiceVersion) bool { return c.Namespace == namespace }),
		Plans:         filter(o.Plans, func(p *operatorsv1alpha1.InstallPlan) bool { return p.Namespace == namespace }),
		Groups:        filter(o.Groups, func(g *operatorsv1.OperatorGroup) bool { return g.Namespace == namespace }),
		Catalogs: filter(o.Catalogs, func(c *operatorsv1alpha1.CatalogSource) bool {
			return c.Namespace == namespace || c.Namespace == global
		}),
		Notes: o.Notes,
	}
}

// of returns the objects of a namespace with its catalogs.
func (o *Objects) of(namespace, global string, all []subscription.Catalog) subscription.Objects {
	return subscription.Objects{
		Namespace: namespace, Global: global, Catalogs: all,
		Subscriptions: o.Subscriptions, Versions: o.Versions, Plans: o.Plans, Groups: o.Groups,
	}
}

func filter[T any](list []T, wanted func(T) bool) []T {
	var out []T
	for _, one := range list {
		if wanted(one) {
			out = append(out, one)
		}
	}
	return out
}
