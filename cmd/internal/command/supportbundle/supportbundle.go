// Package supportbundle is the command that collects the data for remote support, without secrets.
package supportbundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/bundles"
	explaincommand "github.com/chandlery/chandlery/cmd/internal/command/explain"
	"github.com/chandlery/chandlery/cmd/internal/command/status"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/redact"
	"github.com/chandlery/chandlery/cmd/internal/terminal"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/scheme"
	"github.com/chandlery/chandlery/supervisor/explain"
	"github.com/chandlery/chandlery/supervisor/explain/snapshot"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

const (
	// timeFormat is the format of times.
	timeFormat = time.RFC3339
	// nameFormat is the format of times in file names.
	nameFormat = "20060102-150405"
)

const help = `Collect support data in one file that only its owner can read. The file contains
Events, the logs of supervisors, catalogs and operators, the output of the commands
status and explain, and the objects that these commands read. Read access is enough.

The command reads no Secrets and no ConfigMaps. It removes the values of all environment
variables. It also removes text that looks like a password, a token, a private key or the
credentials of a URL. The bundle contains certificates, and the names of objects, images
and hosts. Check the bundle before you share it.

Exit codes:
  0  the bundle is complete
  1  no bundle was written
  2  no bundle was written, because a namespace does not exist
  3  the bundle was written but is incomplete; missing.txt in the bundle lists the gaps
  4  the API server cannot be reached`

// options are the flags of the command.
type options struct {
	connection console.Connection
	all        bool
	global     string
	path       string
	logBytes   string
	maxBytes   string
	showEnv    bool
	noLogs     bool
	program    string
}

// New returns the command "support-bundle" of a program. name is how users call the program, and
// agent is its user agent for API servers.
func New(name, agent string) *cobra.Command {
	o := options{connection: console.Connection{Agent: agent}, program: name}
	cmd := &cobra.Command{
		Use:   "support-bundle [-n NAMESPACE | -A]",
		Short: "Collect support data in one file, without secrets",
		Long:  help,
		Example: "  " + name + " support-bundle -n shop\n" +
			"  " + name + " support-bundle -A -o trouble.tar.gz --log-bytes 4Mi",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	o.connection.AddFlags(cmd)
	o.connection.AddNamespaceFlag(cmd, "namespace to collect from, with the catalogs that it uses; empty: all namespaces")
	flags.BoolVarP(&o.all, "all-namespaces", "A", false, "collect from all namespaces; do not fall back to the namespace of the kubeconfig's context")
	o.connection.AddCatalogNamespaceFlag(cmd, &o.global)
	flags.StringVarP(&o.path, "output", "o", "", "file to write; -: standard output; default: chandlery-support-TIME.tar.gz")
	flags.StringVar(&o.logBytes, "log-bytes", "1Mi", "size limit for each log; the newest part is kept")
	flags.StringVar(&o.maxBytes, "max-bytes", "64Mi", "size limit for the bundle before compression")
	flags.BoolVar(&o.noLogs, "no-logs", false, "leave out the logs of pods")
	flags.BoolVar(&o.showEnv, "show-env", false, "show the values of environment variables, except those with secret-like names")
	if err := cmd.MarkFlagFilename("output", "tar.gz"); err != nil {
		panic(err) //nolint:forbidigo // the flag has just been added
	}
	return cmd
}

// gatherer collects the files of a bundle.
type gatherer struct {
	*options

	logLimit int64
	client   client.Client
	clients  kubernetes.Interface
	version  string
	log      io.Writer
	contents contents
}

func (o *options) run(cmd *cobra.Command) error {
	named := cmd.Flags().Changed("namespace")
	if named && o.all {
		return errors.New("--namespace (-n) and --all-namespaces (-A) exclude each other; give one of them")
	}
	logLimit, err := bytesOf("--log-bytes", o.logBytes)
	if err != nil {
		return err
	}
	room, err := bytesOf("--max-bytes", o.maxBytes)
	if err != nil {
		return err
	}
	g := &gatherer{options: o, logLimit: logLimit, version: cmd.Root().Version, log: cmd.ErrOrStderr(), contents: contents{room: room}}
	if err := g.connect(); err != nil {
		return err
	}
	what, err := status.Scope(&o.connection, o.global, named, o.all)
	if err != nil {
		return err //nolint:wrapcheck // names the flag
	}
	observed, err := g.gather(cmd.Context(), what)
	if err != nil {
		return err
	}
	if err := g.write(cmd.OutOrStdout(), observed.ReadAt); err != nil {
		return err
	}
	if len(g.contents.left) > 0 {
		fmt.Fprintf(g.log, "something could not be read: missing.txt in the bundle lists it\n")
		return console.Verdict(console.Forbidden)
	}
	return nil
}

// bytesOf parses a size.
func bytesOf(flag, text string) (int64, error) {
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Value() <= 0 {
		return 0, fmt.Errorf("%s is %q; it has to be a size of at least one byte, as 512Ki or 64Mi", flag, text)
	}
	return quantity.Value(), nil
}

func (g *gatherer) connect() error {
	cfg, err := g.connection.RESTConfig()
	if err != nil {
		return err //nolint:wrapcheck // says where it looked
	}
	if g.client, err = g.connection.Client(); err != nil {
		return err //nolint:wrapcheck // says where it looked
	}
	if g.clients, err = kubernetes.NewForConfig(cfg); err != nil {
		return fmt.Errorf("reaching the API server at %s: %w", cfg.Host, err)
	}
	return nil
}

// gather reads everything. It adds the most important files first, so they fit.
func (g *gatherer) gather(ctx context.Context, what snapshot.Options) (*explain.ClusterState, error) {
	g.progressf("looking at the cluster")
	what.Access = competing.NewAccessReviewer(g.client, competing.VerbOLM, clock.RealClock{})
	observed, err := snapshot.Read(ctx, g.client, what)
	if err != nil {
		return nil, err //nolint:wrapcheck // says what is missing
	}
	for _, u := range observed.Unreadable {
		if u.Reason != explain.UnreadableNotInstalled {
			g.contents.left = append(g.contents.left,
				fmt.Sprintf("%s of %s: %s", u.Resource, cmp.Or(u.Namespace, "all namespaces"), cmp.Or(u.Message, u.Reason)))
		}
	}
	policy := redact.Policy{Env: g.showEnv}
	if err := g.summaries(observed, policy); err != nil {
		return nil, err
	}
	kinds, err := scheme.New()
	if err != nil {
		return nil, err //nolint:wrapcheck // wrapped where it arises
	}
	objects := objectsOf(observed)
	g.progressf("%s", bundles.Count(len(objects), "object"))
	for _, object := range objects {
		if err := g.contents.addObject(object, kinds, policy); err != nil {
			return nil, err
		}
	}
	if err := g.events(ctx, observed); err != nil {
		return nil, err
	}
	if !g.noLogs {
		g.logs(ctx, observed)
	}
	return observed, ctx.Err() //nolint:wrapcheck // the user has interrupted it
}

func (g *gatherer) progressf(format string, args ...any) { fmt.Fprintf(g.log, format+"\n", args...) }

// summaries adds the output of other commands.
func (g *gatherer) summaries(o *explain.ClusterState, policy redact.Policy) error {
	s := status.Of(o)
	text, err := asJSON(s, policy)
	if err != nil {
		return err
	}
	wide := status.View{Wide: true, Program: g.program}
	g.contents.add("status.json", text)
	g.contents.add("status.txt", []byte(terminal.Escape(redact.Text(wide.Text(&s)))))
	g.contents.add("explain.txt", []byte(terminal.Escape(redact.Text(explaincommand.Text(o)))))
	g.contents.add("versions.txt", []byte(g.versions(&s)))
	return nil
}

// versions returns the versions of the program, the API server and the supervisors.
func (g *gatherer) versions(s *status.Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "program: %s\nplatform: %s/%s\ntaken: %s\n", g.version, runtime.GOOS, runtime.GOARCH, s.ReadAt.UTC().Format(timeFormat))
	if server, err := g.clients.Discovery().ServerVersion(); err != nil {
		fmt.Fprintf(&b, "api server: %v\n", err)
	} else {
		fmt.Fprintf(&b, "api server: %s\n", server.GitVersion)
	}
	for i := range s.Supervisors {
		one := &s.Supervisors[i]
		if one.Image == "" {
			continue
		}
		fmt.Fprintf(&b, "supervisor of Lease %s/%s: %s\n", one.Namespace, api.LeaseName, one.Image)
	}
	return b.String()
}

// events adds all events of the namespaces with observed objects. The state has only warnings.
func (g *gatherer) events(ctx context.Context, o *explain.ClusterState) error {
	places := map[string]bool{}
	for _, object := range objectsOf(o) {
		places[object.GetNamespace()] = true
	}
	delete(places, "")
	g.progressf("events of %s", bundles.Count(len(places), "namespace"))
	for _, namespace := range slices.Sorted(maps.Keys(places)) {
		var list corev1.EventList
		if err := g.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			g.contents.left = append(g.contents.left, fmt.Sprintf("events/%s.yaml: %v", namespace, err))
			continue
		}
		if err := g.contents.addEvents(namespace, list.Items); err != nil {
			return err
		}
	}
	return nil
}

// logs adds the logs of the pods of interest.
func (g *gatherer) logs(ctx context.Context, o *explain.ClusterState) {
	for i := range o.Pods {
		pod := &o.Pods[i]
		if ctx.Err() == nil && ofInterest(o, pod) {
			g.progressf("log of pod %s/%s", pod.Namespace, pod.Name)
			g.addLogs(ctx, pod)
		}
	}
}

// write writes the bundle to its destination.
func (g *gatherer) write(out io.Writer, at time.Time) error {
	root := "chandlery-support-" + at.UTC().Format(nameFormat)
	if len(g.contents.left) > 0 {
		// The list of what was left out is always added.
		text := strings.Join(g.contents.left, "\n") + "\n"
		g.contents.files = append(g.contents.files, file{path: "missing.txt", content: []byte(terminal.Escape(redact.Text(text)))})
	}
	if g.path == "-" {
		return g.contents.write(terminal.Unfiltered(out), root, at)
	}
	path := g.path
	if path == "" {
		path = root + ".tar.gz"
	}
	if err := g.contents.writeFile(path, root, at); err != nil {
		return err
	}
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	if _, err := fmt.Fprintln(out, path); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
