package selection

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/bundles"
)

// maxInstalledBytes bounds a list of ClusterServiceVersions. Each may have a megabyte.
const maxInstalledBytes = 1 << 30

// labelCopied marks copies of a ClusterServiceVersion in other namespaces.
const labelCopied = "olm.copiedFrom"

var (
	errInstalledLarge = fmt.Errorf("the list has more than %d bytes", maxInstalledBytes)
	errNotInstalled   = errors.New("it is neither a ClusterServiceVersion nor a list of them: write it with 'kubectl get clusterserviceversions -A -o json'")
)

// installedObject holds the fields used of a ClusterServiceVersion.
type installedObject struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Items []installedObject `json:"items"`
}

// ParseInstalled returns the names of the ClusterServiceVersions in a list of them, as kubectl
// prints it in JSON or YAML, for [Selection.Installed]. It omits copies. Each name occurs once, in
// byte order.
func ParseInstalled(text []byte) ([]string, error) {
	const kind = "ClusterServiceVersion"
	if len(text) > maxInstalledBytes {
		return nil, errInstalledLarge
	}
	var list installedObject
	err := json.Unmarshal(text, &list)
	if err != nil {
		err = yaml.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what is installed: %w", bundles.DescribeJSON(err))
	}
	items := list.Items
	switch list.Kind {
	case kind:
		items = []installedObject{list}
	case "List", kind + "List":
	default:
		return nil, fmt.Errorf("reading what is installed: %w; found kind %s", errNotInstalled, bundles.Quote(list.Kind))
	}
	var names []string
	for i := range items {
		if items[i].Kind != kind && items[i].Kind != "" {
			return nil, fmt.Errorf("reading what is installed: items[%d]: %w; found kind %s", i, errNotInstalled, bundles.Quote(items[i].Kind))
		}
		if _, copied := items[i].Metadata.Labels[labelCopied]; !copied && items[i].Metadata.Name != "" {
			names = append(names, items[i].Metadata.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
