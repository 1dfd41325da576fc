package inventory_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/test/inventory"
)

// catalog is a folder with a file-based catalog. It is read in the simplest way, because the
// expected values must not come from the tested code.
type catalog struct{ dir string }

// version is one version of a package, as its bundle describes it.
type version struct {
	csv         operatorsv1alpha1.ClusterServiceVersion
	definitions []apiextensionsv1.CustomResourceDefinition
}

// version reads a bundle of a package by name.
func (c catalog) version(pkg, name string) (*version, error) {
	file, err := os.Open(filepath.Join(c.dir, pkg, "catalog.json"))
	if err != nil {
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}
	defer file.Close()
	blobs := json.NewDecoder(file)
	for {
		var blob struct {
			Schema, Name string
			Properties   []struct {
				Type  string
				Value json.RawMessage
			}
		}
		err := blobs.Decode(&blob)
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("package %s has no bundle %s", pkg, name)
		}
		if err != nil {
			return nil, fmt.Errorf("reading package %s: %w", pkg, err)
		}
		if blob.Schema != "olm.bundle" || blob.Name != name {
			continue
		}
		v := &version{}
		for _, p := range blob.Properties {
			if p.Type != "olm.bundle.object" {
				continue
			}
			if err := v.add(p.Value); err != nil {
				return nil, fmt.Errorf("reading bundle %s: %w", name, err)
			}
		}
		return v, nil
	}
}

func (v *version) add(property []byte) error {
	var inline struct{ Data []byte }
	if err := json.Unmarshal(property, &inline); err != nil {
		return err
	}
	var kind metav1.TypeMeta
	if err := json.Unmarshal(inline.Data, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case operatorsv1alpha1.ClusterServiceVersionKind:
		return json.Unmarshal(inline.Data, &v.csv)
	case "CustomResourceDefinition":
		var crd apiextensionsv1.CustomResourceDefinition
		if err := json.Unmarshal(inline.Data, &crd); err != nil {
			return err
		}
		v.definitions = append(v.definitions, crd)
	}
	return nil
}

// comes returns the names of what an installed version must have in its namespace, besides its
// definitions: itself, its Deployments, and their ServiceAccounts.
func (v *version) comes(namespace string) []string {
	names := []string{inventory.Entry(operatorsv1alpha1.ClusterServiceVersionKind, operatorsv1alpha1.GroupName, namespace, v.csv.Name)}
	strategy := &v.csv.Spec.InstallStrategy.StrategySpec
	for i := range strategy.DeploymentSpecs {
		names = append(names, inventory.Entry("Deployment", "apps", namespace, strategy.DeploymentSpecs[i].Name))
	}
	for _, rights := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
		names = append(names, inventory.Entry("ServiceAccount", "", namespace, rights.ServiceAccountName))
	}
	return names
}

// stays returns the names of what remains after a version in a namespace was uninstalled: its
// definitions, and what belongs to them. These are the API server's API registrations, the roles
// for the APIs that the version provides, and the Operator that lists them.
func (v *version) stays(pkg, namespace string) []string {
	var names []string
	for i := range v.definitions {
		crd := &v.definitions[i]
		names = append(names, inventory.Entry("CustomResourceDefinition", apiextensionsv1.GroupName, "", crd.Name))
		for _, served := range crd.Spec.Versions {
			if served.Served {
				names = append(names, inventory.Entry("APIService", "apiregistration.k8s.io", "", served.Name+"."+crd.Spec.Group))
			}
		}
	}
	for _, owned := range v.csv.Spec.CustomResourceDefinitions.Owned {
		i := slices.IndexFunc(v.definitions, func(crd apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == owned.Name })
		if i < 0 {
			continue
		}
		names = append(names, inventory.Entry("Operator", operatorsv1alpha1.GroupName, "", pkg+"."+namespace))
		described := func(is apiextensionsv1.CustomResourceDefinitionVersion) bool { return is.Name == owned.Version }
		if v.definitions[i].Spec.Names.Kind != owned.Kind || !slices.ContainsFunc(v.definitions[i].Spec.Versions, described) {
			continue
		}
		for _, suffix := range []string{"admin", "edit", "view", "crdview"} {
			names = append(names, inventory.Entry("ClusterRole", "rbac.authorization.k8s.io", "", owned.Name+"-"+owned.Version+"-"+suffix))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// converted returns the definitions whose objects a webhook of the version converts.
func (v *version) converted() []string {
	var names []string
	for i := range v.csv.Spec.WebhookDefinitions {
		names = append(names, v.csv.Spec.WebhookDefinitions[i].ConversionCRDs...)
	}
	return names
}
