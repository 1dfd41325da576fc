package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/pulling"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/dryrun/imagecheck"
	"github.com/chandlery/chandlery/supervisor/dryrun/inputs"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/supervisor/imagesources"
	"github.com/chandlery/chandlery/supervisor/imagesources/deployed"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// supervisorNamespace is the usual namespace of the supervisor.
const supervisorNamespace = "chandlery-system"

// imageOptions are the flags for images.
type imageOptions struct {
	list, check bool
	pulling     pulling.Flags
	agent       string
}

func (o *imageOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.list, "images", false, "show the images of the steps")
	flags.BoolVar(&o.check, "check", false, "with --images: check that each image can be pulled")
	o.pulling.AddRegistryFlags(flags)
}

func (o *imageOptions) validate(output *console.Output) error {
	switch {
	case o.check && !o.list:
		return errors.New("--check checks images; add --images")
	case o.list && slices.Contains(output.Also, output.Form):
		return fmt.Errorf("--output %s shows no images; remove --images, or set --output to human, json or yaml", output.Form)
	}
	return nil
}

// progress describes what add does.
func (o *imageOptions) progress() string {
	if o.check {
		return "Checking images"
	}
	return "Listing images"
}

// add returns the results with the images of their steps.
func (o *imageOptions) add(ctx context.Context, global string, requests []*inputs.Gathered, results []*dryrun.Result) ([]*dryrun.Result, error) {
	out := make([]*dryrun.Result, 0, len(results))
	for i, gathered := range requests {
		result := *results[i]
		var err error
		if result.Images, err = imagecheck.List(ctx, gathered, result.Steps); err != nil {
			return nil, err //nolint:wrapcheck // names the catalog
		}
		if o.check {
			var notes []string
			if result.Images, notes, err = o.checked(ctx, global, gathered, result.Images); err != nil {
				return nil, explained(err)
			}
			result.Notes = slices.Concat(result.Notes, notes)
		}
		out = append(out, &result)
	}
	return out, nil
}

// checked returns images with the answers of their sources, and notes about how these were asked.
func (o *imageOptions) checked(
	ctx context.Context, global string, gathered *inputs.Gathered, images []dryrun.Image,
) (answered []dryrun.Image, notes []string, err error) {
	cluster := gathered.Cluster()
	if cluster == nil || o.pulling.IsSet() {
		answered, err = o.checkedByFlags(ctx, images)
		return answered, nil, err
	}
	p, note, err := newClusterPull(ctx, cluster.Reader(), global)
	if err != nil {
		return nil, nil, err
	}
	p.source, p.agent = gathered.CatalogSource, o.agent
	answered, err = imagecheck.Check(ctx, p.options, p.verify, images)
	return answered, slices.Concat([]string{note}, slices.Sorted(maps.Keys(p.problems))), err //nolint:wrapcheck // names the image
}

// checkedByFlags returns images with the answers of the sources that the flags name.
func (o *imageOptions) checkedByFlags(ctx context.Context, images []dryrun.Image) ([]dryrun.Image, error) {
	options, err := o.pulling.Options(o.agent)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the flag
	}
	options.Limits = image.BundleLimits()
	policies := imagepolicy.New(o.pulling.ConfigDir())
	byPolicies := func(ctx context.Context, c *image.Client, _ resolution.CatalogKey, reference string) error {
		return verify(ctx, nil, policies, c, imagepolicy.Query{Image: reference})
	}
	return imagecheck.CheckByFlags(ctx, options, byPolicies, images) //nolint:wrapcheck // names the image
}

// newClusterPull finds the supervisor of a cluster. It returns a note about the settings that apply.
func newClusterPull(ctx context.Context, reader client.Reader, global string) (p *clusterPull, note string, err error) {
	if err := image.CheckProxies(os.Getenv); err != nil {
		return nil, "", err //nolint:wrapcheck // names the variable
	}
	p = &clusterPull{reader: reader, problems: map[string]bool{}}
	switch p.supervisor, err = findSupervisor(ctx, reader, global); {
	case errors.Is(err, deployed.ErrNone):
		p.supervisor = &deployed.Supervisor{Settings: imagesources.New(sources.Paths{}, nil)}
		note = fmt.Sprintf("images were checked without settings of a supervisor: %v", err)
	case err != nil:
		return nil, "", err
	default:
		note = "images were checked with the settings of " + p.supervisor.From
	}
	p.policies = newPolicies(ctx, reader, p.supervisor)
	return p, note, nil
}

// findSupervisor returns how the supervisor pulls images.
func findSupervisor(ctx context.Context, reader client.Reader, global string) (*deployed.Supervisor, error) {
	supervisor, err := deployed.Read(ctx, reader, supervisorNamespace)
	if !errors.Is(err, deployed.ErrNone) || global == "" || global == supervisorNamespace {
		return supervisor, err //nolint:wrapcheck // names the object
	}
	if other, failed := deployed.Read(ctx, reader, global); !errors.Is(failed, deployed.ErrNone) {
		return other, failed //nolint:wrapcheck // names the object
	}
	return nil, err //nolint:wrapcheck // names the object
}

// clusterPull pulls images as the supervisor of a cluster does.
type clusterPull struct {
	reader     client.Reader
	supervisor *deployed.Supervisor
	// source returns the object of a catalog; nil if there is none.
	source func(resolution.CatalogKey) *operatorsv1alpha1.CatalogSource
	agent  string
	// policies are the rules for signatures of bundles.
	policies *imagepolicy.Policies

	mu sync.Mutex
	// problems describe unusable pull secrets.
	problems map[string]bool
}

// verify returns an error if the image of a bundle does not meet the rules for signatures.
func (p *clusterPull) verify(ctx context.Context, c *image.Client, key resolution.CatalogKey, reference string) error {
	query := imagepolicy.Query{Image: reference, Own: types.NamespacedName{Namespace: key.Namespace}}
	if source := p.source(key); source != nil {
		query.Own.Name = source.Annotations[api.AnnotationImageVerify]
	}
	return verify(ctx, p.reader, p.policies, c, query)
}

// options returns the options to pull an image of a catalog.
func (p *clusterPull) options(ctx context.Context, key resolution.CatalogKey, reference string) (image.Options, error) {
	catalog := &imagesources.Catalog{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, Account: key.Name}
	if source := p.source(key); source != nil {
		catalog.Account = catalogs.AccountName(source)
		catalog.Secrets, catalog.Config = source.Spec.Secrets, source.Annotations[api.AnnotationImageConfig]
	}
	// The log of the supervisor is not the log of this program.
	access, err := p.supervisor.Access(log.IntoContext(ctx, logr.Discard()), p.reader, catalog, reference)
	if err != nil {
		return image.Options{}, err //nolint:wrapcheck // names the object
	}
	if access.SecretProblem != "" {
		p.mu.Lock()
		p.problems["pull secret "+access.SecretProblem] = true
		p.mu.Unlock()
	}
	return image.Options{
		Keychain: access.Keychain, Sources: access.Sources, PlainHTTP: p.supervisor.PlainHTTP, SkipTLSVerify: p.supervisor.SkipTLSVerify,
		Attempts: 2, Limits: image.BundleLimits(), UserAgent: p.agent,
	}, nil
}

// explained adds the remedy to an error of the settings in the cluster.
func explained(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; grant this permission, or replace the settings of the cluster with --image-config and --pull-secret", err)
	}
	return err
}
