package clusterserviceversion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/apiserver/kubeversion"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// cluster holds the state against which requirements are checked. Maps hold only objects that the
// ClusterServiceVersion names.
type cluster struct {
	Version  string // of the API server
	CRDs     crdsByName
	APIs     apis
	Accounts accountsByName
	RBAC     rbac
	Others   versions.List
}

// requirements checks all requirements of csv. The order of the entries is fixed, so that an
// unchanged cluster yields an unchanged status.
func requirements(csv *operatorsv1alpha1.ClusterServiceVersion, c cluster) phase.Requirements {
	statuses := slices.Concat(
		kubeVersion(csv, c),
		crds(csv, c),
		apiServices(csv, c),
		ownedAPIServices(csv),
		nativeAPIs(csv, c),
		serviceAccounts(csv, c),
	)
	return phase.Requirements{Met: allMet(statuses), Statuses: statuses, CRDConflict: crdConflict(csv, c.Others)}
}

// allMet reports whether each requirement is met.
func allMet(statuses []operatorsv1alpha1.RequirementStatus) bool {
	return !slices.ContainsFunc(statuses, func(s operatorsv1alpha1.RequirementStatus) bool {
		return s.Status != operatorsv1alpha1.RequirementStatusReasonPresent && s.Status != deploymentFound
	})
}

func kubeVersion(csv *operatorsv1alpha1.ClusterServiceVersion, c cluster) []operatorsv1alpha1.RequirementStatus {
	if csv.Spec.MinKubeVersion == "" {
		return nil
	}
	s := operatorsv1alpha1.RequirementStatus{
		Group:   operatorsv1alpha1.GroupName,
		Version: operatorsv1alpha1.GroupVersion,
		Kind:    operatorsv1alpha1.ClusterServiceVersionKind,
		Name:    csv.Name,
		Status:  operatorsv1alpha1.RequirementStatusReasonPresentNotSatisfied,
	}
	wanted, err := semver.ParseTolerant(csv.Spec.MinKubeVersion)
	if err != nil {
		s.Message = olmtext.MinimumUnparsable
		return []operatorsv1alpha1.RequirementStatus{s}
	}
	server, err := kubeversion.Parse(c.Version)
	switch {
	case err != nil:
		s.Message = olmtext.ServerVersionUnparsable
	case wanted.GT(server):
		s.Message = olmtext.MinimumNotMet(csv.Spec.MinKubeVersion, server.String())
	default:
		s.Status = operatorsv1alpha1.RequirementStatusReasonPresent
		s.Message = olmtext.MinimumMet(csv.Spec.MinKubeVersion, c.Version)
	}
	return []operatorsv1alpha1.RequirementStatus{s}
}

func crds(csv *operatorsv1alpha1.ClusterServiceVersion, c cluster) []operatorsv1alpha1.RequirementStatus {
	var out []operatorsv1alpha1.RequirementStatus
	for _, description := range csv.GetAllCRDDescriptions() {
		crd := c.CRDs[description.Name]
		s := crdStatus(description, crd, client.ObjectKeyFromObject(csv))
		if others := outdated(csv, crd); others != "" && s.Status == operatorsv1alpha1.RequirementStatusReasonPresent {
			s.Status = operatorsv1alpha1.RequirementStatusReasonPresentNotSatisfied
			s.Message = olmtext.CRDOfOthers(others)
		}
		out = append(out, s)
	}
	return out
}

// outdated returns the versions that a CustomResourceDefinition of csv was applied with, while csv
// is not among them. Versions of other namespaces have their namespace. Its InstallPlan, which creates a version before its definitions, has not
// applied the definition yet. An operator that starts now would find the older one. It returns ""
// for versions without an InstallPlan, and for those that have been installed.
func outdated(csv *operatorsv1alpha1.ClusterServiceVersion, crd *apiextensionsv1.CustomResourceDefinition) string {
	catalog, _ := api.RecordedCatalog(csv)
	planned := catalog.Namespace != ""
	begun := csv.Status.Phase != operatorsv1alpha1.CSVPhaseNone && csv.Status.Phase != operatorsv1alpha1.CSVPhasePending
	if crd == nil || !planned || begun || !csv.OwnsCRD(crd.Name) {
		return ""
	}
	var others []string
	for key, value := range crd.Annotations {
		if value == csv.Namespace+"/"+csv.Name && strings.HasPrefix(key, api.PrefixInstalledAlongside) {
			return ""
		}
		if strings.HasPrefix(key, api.PrefixInstalledAlongside) {
			others = append(others, strings.TrimPrefix(value, csv.Namespace+"/"))
		}
	}
	slices.Sort(others)
	return strings.Join(others, ", ")
}

// crdStatus returns whether a definition exists and serves a version. A version that will be served
// once csv has set up its webhook counts as served.
func crdStatus(
	d operatorsv1alpha1.CRDDescription, crd *apiextensionsv1.CustomResourceDefinition, csv types.NamespacedName,
) operatorsv1alpha1.RequirementStatus {
	s := operatorsv1alpha1.RequirementStatus{
		Group:   apiextensionsv1.GroupName,
		Version: "v1",
		Kind:    "CustomResourceDefinition",
		Name:    d.Name,
	}
	if crd == nil {
		s.Status, s.Message = operatorsv1alpha1.RequirementStatusReasonNotPresent, olmtext.CRDMissing
		return s
	}
	s.UUID = string(crd.UID)
	switch {
	case !serves(crd, d.Version) && !webhook.WillServe(crd, csv, d.Version):
		s.Status = operatorsv1alpha1.RequirementStatusReasonNotPresent
		s.Message = olmtext.CRDVersionNotServed
	case !established(crd):
		s.Status = operatorsv1alpha1.RequirementStatusReasonNotAvailable
		s.Message = olmtext.CRDNotEstablished
	default:
		s.Status = operatorsv1alpha1.RequirementStatusReasonPresent
		s.Message = olmtext.CRDPresent
	}
	return s
}

func serves(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Served && (version == "" || v.Name == version)
	})
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	isTrue := func(kind apiextensionsv1.CustomResourceDefinitionConditionType) bool {
		return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == kind && c.Status == apiextensionsv1.ConditionTrue
		})
	}
	return isTrue(apiextensionsv1.Established) && isTrue(apiextensionsv1.NamesAccepted)
}

// The status of an owned API service states whether its Deployment is declared.
const (
	deploymentFound    operatorsv1alpha1.StatusReason = "DeploymentFound"
	deploymentNotFound operatorsv1alpha1.StatusReason = "DeploymentNotFound"
)

func ownedAPIServices(csv *operatorsv1alpha1.ClusterServiceVersion) []operatorsv1alpha1.RequirementStatus {
	var out []operatorsv1alpha1.RequirementStatus
	for _, d := range csv.GetOwnedAPIServiceDescriptions() {
		s := operatorsv1alpha1.RequirementStatus{
			Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService", Name: d.GetName(),
			Status: deploymentNotFound,
		}
		if slices.ContainsFunc(csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs,
			func(spec operatorsv1alpha1.StrategyDeploymentSpec) bool { return spec.Name == d.DeploymentName }) {
			s.Status = deploymentFound
		}
		out = append(out, s)
	}
	return out
}

// crdConflict returns a message about another ClusterServiceVersion, not on the same chain, that
// owns one of csv's CRDs; empty when there is none. The older one keeps the CRD, so that a newer
// operator cannot break it.
func crdConflict(csv *operatorsv1alpha1.ClusterServiceVersion, others versions.List) string {
	chain := others.Chain(csv)
	for _, other := range others {
		if other.UID == csv.UID || slices.Contains(chain, other) || !versions.IsOlder(other, csv) {
			continue
		}
		for _, owned := range csv.Spec.CustomResourceDefinitions.Owned {
			if other.OwnsCRD(owned.Name) {
				return fmt.Sprintf("spec.customresourcedefinitions.owned names %s, which csv %s owns already; remove one of the two operators",
					owned.Name, other.Name)
			}
		}
	}
	return ""
}
