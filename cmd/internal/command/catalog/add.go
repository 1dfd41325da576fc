package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/cmd/internal/command/wait"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

const addHelp = `Create a CatalogSource for an image or a server. You can repeat the command: if the
CatalogSource exists, the command compares the image, the address and the flags that you
set.

Exit codes:
  0  the catalog exists; with --wait: it is ready
  1  the command failed
  2  the catalog exists and differs, is invalid, or was not ready in time; or the
     namespace does not exist
  3  a permission is missing
  4  the API server cannot be reached`

// settings are the fields of a CatalogSource.
type settings struct {
	image, address string
	secrets        []string
	priority       int
	poll           time.Duration
}

// adder is the command "catalog add".
type adder struct {
	shared

	settings settings
	// isSet reports whether the user set a flag.
	isSet   func(flag string) bool
	dryRun  bool
	wait    bool
	timeout time.Duration
	program string
}

func newAdd(name, agent string) *cobra.Command {
	a := &adder{shared: shared{connection: console.Connection{Agent: agent}}, program: name}
	cmd := &cobra.Command{
		Use:               "add NAME (--image=IMAGE | --address=HOST:PORT)",
		Short:             "Add a catalog",
		Long:              addHelp,
		Example:           "  " + name + " catalog add community --image registry.example.com/community:v1 --poll-interval 10m",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.run(cmd, args[0]) },
	}
	a.addFlags(cmd)
	flags, s := cmd.Flags(), &a.settings
	a.isSet = flags.Changed
	flags.StringVar(&s.image, "image", "", "image of the catalog")
	flags.StringVar(&s.address, "address", "", "address of the server")
	flags.StringSliceVar(&s.secrets, "pull-secret", nil, "Secrets with credentials for the image, in the namespace of the catalog")
	flags.IntVar(&s.priority, "priority", 0, "spec.priority of the CatalogSource")
	flags.DurationVar(&s.poll, "poll-interval", 0, "time between checks of the tag; 0: no checks")
	flags.BoolVar(&a.dryRun, "dry-run", false, "show the result; change nothing")
	flags.BoolVar(&a.wait, "wait", false, "wait until the catalog is ready")
	console.AddTimeoutFlag(flags, &a.timeout, 10*time.Minute, "time limit for --wait")
	for _, free := range []string{"image", "address", "pull-secret", "priority", "poll-interval"} {
		console.Complete(cmd, free, cobra.NoFileCompletions)
	}
	return cmd
}

func (a *adder) run(cmd *cobra.Command, name string) error {
	if err := a.output.Validate(); err != nil {
		return err
	}
	if a.dryRun && a.wait {
		return errors.New("--dry-run and --wait exclude each other: a dry run creates nothing")
	}
	namespace, err := a.namespace(cmd)
	if err != nil {
		return err
	}
	source, err := newSource(namespace, name, &a.settings)
	if err != nil {
		return err
	}
	c, err := a.connection.Client()
	if err != nil {
		return err
	}
	created, err := a.create(cmd.Context(), c, source)
	if err != nil {
		return err
	}
	r := report{Catalog: source, Created: created && !a.dryRun, Outcome: a.outcome(created)}
	if !a.output.ForMachines() {
		if err := write(cmd.OutOrStdout(), a.text(&r)); err != nil {
			return err
		}
	}
	if a.wait {
		return a.awaitReady(cmd, c, &r)
	}
	return a.output.WithDocument(cmd.OutOrStdout(), &r, nil)
}

// report is the document of the command.
type report struct {
	Catalog *operatorsv1alpha1.CatalogSource `json:"catalog"`
	Created bool                             `json:"created"`
	// Outcome is what the command did: planned, unchanged, created, ready or failed.
	Outcome outcome `json:"outcome"`
}

// outcome returns what the command did before it waits.
func (a *adder) outcome(created bool) outcome {
	switch {
	case !created:
		return outcomeUnchanged
	case a.dryRun:
		return outcomePlanned
	default:
		return outcomeCreated
	}
}

// text returns the text about what the command did before it waits.
func (a *adder) text(r *report) string {
	name := r.Catalog.Namespace + "/" + r.Catalog.Name
	switch {
	case r.Outcome == outcomeUnchanged:
		return "CatalogSource " + name + " exists, and is as requested\n"
	case r.Outcome == outcomePlanned:
		return "CatalogSource " + name + " would be created (dry run)\n"
	case a.wait:
		return "CatalogSource " + name + " was created\n"
	default:
		return fmt.Sprintf("CatalogSource %s was created. Wait for it: %s wait catalogsource/%s -n %s\n", name, a.program, r.Catalog.Name, r.Catalog.Namespace)
	}
}

// awaitReady waits until the catalog is ready, and prints the result.
func (a *adder) awaitReady(cmd *cobra.Command, c client.Client, r *report) error {
	namespace, name := r.Catalog.Namespace, r.Catalog.Name
	w := console.Waiter{
		Log: cmd.ErrOrStderr(), Timeout: a.timeout, Aim: "the catalog to be ready",
		Remedy: a.program + " explain catalogsource/" + name + " -n " + namespace,
	}
	reader := wait.Reader{Client: c, Namespace: namespace}
	failure := w.Wait(cmd.Context(), func(ctx context.Context) ([]console.WaitState, error) {
		live, err := reader.Catalog(ctx, name)
		return []console.WaitState{wait.CatalogState(namespace+"/"+name, live)}, err
	})
	r.Outcome = outcomeReady
	if failure != nil {
		r.Outcome = outcomeFailed
	}
	if failure == nil && !a.output.ForMachines() {
		return write(cmd.OutOrStdout(), "CatalogSource "+namespace+"/"+name+" is ready\n")
	}
	return a.output.WithDocument(cmd.OutOrStdout(), r, failure)
}

// newSource returns the CatalogSource with the settings.
func newSource(namespace, name string, s *settings) (*operatorsv1alpha1.CatalogSource, error) {
	if reasons := validation.IsDNS1123Subdomain(name); len(reasons) > 0 {
		return nil, fmt.Errorf("argument %q is no name of a CatalogSource: %s", name, strings.Join(reasons, ", "))
	}
	switch {
	case (s.image == "") == (s.address == ""):
		return nil, errors.New("set either --image or --address")
	case s.address != "" && (s.poll != 0 || len(s.secrets) > 0):
		return nil, errors.New("--poll-interval and --pull-secret need --image: the supervisor pulls no image for --address")
	case s.poll < 0:
		return nil, fmt.Errorf("--poll-interval is %s; it has to be 0 or more", s.poll)
	}
	if s.image != "" {
		if _, err := image.ParseReference(s.image); err != nil {
			return nil, fmt.Errorf("--image is invalid: %w; write it as HOST/NAME:TAG or HOST/NAME@DIGEST", err)
		}
	}
	source := &operatorsv1alpha1.CatalogSource{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.CatalogSourceKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: operatorsv1alpha1.CatalogSourceSpec{
			SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: s.image, Address: s.address,
			Secrets: s.secrets, Priority: s.priority,
		},
	}
	if s.image != "" {
		source.Spec.GrpcPodConfig = &operatorsv1alpha1.GrpcPodConfig{SecurityContextConfig: operatorsv1alpha1.Restricted}
	}
	if s.poll > 0 {
		source.Spec.UpdateStrategy = &operatorsv1alpha1.UpdateStrategy{RegistryPoll: &operatorsv1alpha1.RegistryPoll{
			RawInterval: s.poll.String(), Interval: &metav1.Duration{Duration: s.poll},
		}}
	}
	if _, problem := catalogs.SpecProblem(source); problem != "" {
		return nil, fmt.Errorf("CatalogSource %s/%s would be invalid: %s", namespace, name, problem)
	}
	return source, nil
}

// create creates a CatalogSource. created is false if it exists as requested.
func (a *adder) create(ctx context.Context, c client.Client, source *operatorsv1alpha1.CatalogSource) (created bool, err error) {
	options := []client.CreateOption{client.FieldOwner(a.connection.Agent)}
	if a.dryRun {
		options = append(options, client.DryRunAll)
	}
	err = c.Create(ctx, source.DeepCopy(), options...)
	if !apierrors.IsAlreadyExists(err) {
		return err == nil, creationError(source, err)
	}
	live, err := wait.Reader{Client: c, Namespace: source.Namespace}.Catalog(ctx, source.Name)
	if err != nil {
		return false, err
	}
	if live == nil {
		return false, fmt.Errorf("CatalogSource %s/%s is being deleted; repeat the command", source.Namespace, source.Name)
	}
	return false, difference(live, source, a.isSet)
}

// creationError returns the error for a CatalogSource that could not be created, with a remedy for a missing namespace.
func creationError(source *operatorsv1alpha1.CatalogSource, err error) error {
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf("creating CatalogSource %s/%s: %w", source.Namespace, source.Name, err)
	status, is := errors.AsType[*apierrors.StatusError](err)
	if is && apierrors.IsNotFound(err) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind == "namespaces" {
		return &console.Coded{Code: console.Negative, Err: fmt.Errorf("%w; create the namespace: kubectl create namespace %s", wrapped, source.Namespace)}
	}
	return wrapped
}

// difference returns an error that names a field in which an existing CatalogSource differs from the wanted one. Fields
// whose optional flag is not set may have any value. Either the image or the address is wanted, and the other is empty.
func difference(live, wanted *operatorsv1alpha1.CatalogSource, isSet func(flag string) bool) error {
	for _, field := range []struct{ flag, name, has, wants string }{
		{"", "image", live.Spec.Image, wanted.Spec.Image},
		{"", "address", live.Spec.Address, wanted.Spec.Address},
		{"pull-secret", "secrets", strings.Join(slices.Sorted(slices.Values(live.Spec.Secrets)), ","), strings.Join(slices.Sorted(slices.Values(wanted.Spec.Secrets)), ",")},
		{"priority", "priority", strconv.Itoa(live.Spec.Priority), strconv.Itoa(wanted.Spec.Priority)},
		{"poll-interval", "updateStrategy.registryPoll.interval", interval(live), interval(wanted)},
	} {
		if field.has != field.wants && (field.flag == "" || isSet(field.flag)) {
			return &console.Coded{Code: console.Negative, Err: fmt.Errorf(
				"CatalogSource %s/%s exists, and its spec.%s is %q, not %q; change the CatalogSource, or choose another name",
				live.Namespace, live.Name, field.name, field.has, field.wants)}
		}
	}
	return nil
}

func interval(source *operatorsv1alpha1.CatalogSource) string {
	if s := source.Spec.UpdateStrategy; s != nil && s.RegistryPoll != nil && s.Interval != nil {
		return s.Interval.Duration.String()
	}
	return ""
}
