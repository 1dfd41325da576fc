package inputs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/subscription"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// Options select what is read.
type Options struct {
	// Files contain objects; "-" stands for Stdin.
	Files []string
	Stdin io.Reader
	// Namespace is the namespace of the cluster to read; empty for none.
	Namespace string
	// Global is the namespace whose catalogs serve every namespace.
	Global string
	// CatalogOverrides are the catalogs whose content does not come from the cluster.
	CatalogOverrides []CatalogOverride
	// Contents are the contents of catalogs that were read before. If OnlyContents is set, there are no other catalogs,
	// and no CatalogSource is read.
	Contents     map[resolution.CatalogKey]CatalogContent
	OnlyContents bool
	// Connect connects to the cluster. It is called only if something of the cluster is needed.
	Connect func() (*Cluster, error)
	// Progress shows that an operation is running, until done is called.
	Progress func(what string) (done func())
	// Now is the time at which the files would be applied.
	Now metav1.Time
}

// defaultNamespace is the namespace of objects in files that name none.
const defaultNamespace = "default"

// Gathered is the input of one namespace.
type Gathered struct {
	dryrun.Request

	scope *scope
}

// Cluster returns the cluster that has been read; nil if no cluster was needed.
func (g *Gathered) Cluster() *Cluster { return g.scope.cluster }

// CatalogSource returns the object of a catalog; nil if only --catalog names it.
func (g *Gathered) CatalogSource(key resolution.CatalogKey) *operatorsv1alpha1.CatalogSource {
	if p := g.scope.locations[key]; p != nil {
		return p.source
	}
	return nil
}

// Gather reads all inputs, for each namespace that has Subscriptions.
func Gather(ctx context.Context, o Options) ([]*Gathered, error) {
	g := &gatherer{Options: o, contents: map[string]*loadedContent{}}
	files, err := g.files()
	if err != nil {
		return nil, err
	}
	if o.Namespace != "" {
		return g.live(ctx, files)
	}
	namespaces := files.namespaces()
	if len(namespaces) == 0 {
		return nil, fmt.Errorf("there is no Subscription in %s; add one, or name a namespace of the cluster with --namespace", strings.Join(o.Files, ", "))
	}
	requests := make([]*Gathered, 0, len(namespaces))
	for _, namespace := range namespaces {
		objects := &Objects{}
		objects.apply(files.within(namespace, o.Global), o.Now)
		request, err := g.request(ctx, namespace, objects)
		if err != nil {
			return nil, err
		}
		requests = append(requests, request)
	}
	return requests, nil
}

// gatherer is the state of Gather.
type gatherer struct {
	Options

	cluster *Cluster

	mu       sync.Mutex
	contents map[string]*loadedContent
}

// loadedContent is the content of a source.
type loadedContent struct {
	once     sync.Once
	snapshot *catalogs.Snapshot
	notes    []string
	err      error
}

// files reads the objects of the files.
func (g *gatherer) files() (*Objects, error) {
	if len(g.Files) == 0 && g.Namespace == "" {
		return nil, errors.New("nothing to look at: name files with --filename (-f), a namespace of the cluster with --namespace (-n), or both")
	}
	objects := &Objects{}
	for _, name := range g.Files {
		if err := g.file(objects, name); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func (g *gatherer) file(objects *Objects, name string) error {
	if name == "-" {
		return objects.Read("standard input", g.Stdin, cmp.Or(g.Namespace, defaultNamespace))
	}
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("--filename %s: %w", name, err)
	}
	if info.IsDir() {
		return g.directory(objects, name)
	}
	return g.open(objects, name)
}

// directory reads the manifests in a directory, by their file names. It does not read subdirectories.
func (g *gatherer) directory(objects *Objects, name string) error {
	entries, err := os.ReadDir(name)
	if err != nil {
		return fmt.Errorf("--filename %s: %w", name, err)
	}
	found := false
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			continue
		}
		found = true
		if err := g.open(objects, filepath.Join(name, entry.Name())); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("--filename %s: the directory has no file *.yaml, *.yml or *.json; directories in it are not looked into", name)
	}
	return nil
}

// open reads one file.
func (g *gatherer) open(objects *Objects, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("--filename %s: %w", name, err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	return objects.Read(name, file, cmp.Or(g.Namespace, defaultNamespace))
}

// live reads a namespace of the cluster, with the files applied to its objects.
func (g *gatherer) live(ctx context.Context, files *Objects) ([]*Gathered, error) {
	for _, sub := range files.Subscriptions {
		if sub.Namespace != g.Namespace {
			return nil, fmt.Errorf("subscription %s is for namespace %s (metadata.namespace), and --namespace is %s; make them the same, or leave --namespace out to look at the files alone",
				sub.Name, sub.Namespace, g.Namespace)
		}
	}
	cluster, err := g.connect()
	if err != nil {
		return nil, fmt.Errorf("looking at namespace %s: %w; to do without a cluster leave --namespace out and use --filename and --catalog", g.Namespace, err)
	}
	done := g.Progress("Reading namespace " + g.Namespace)
	objects, err := g.liveObjects(ctx, cluster)
	missing := err == nil && objects.empty(g.Namespace) && cluster.lacks(ctx, g.Namespace)
	done()
	if err != nil {
		return nil, err
	}
	if missing && len(files.Subscriptions) == 0 {
		return nil, fmt.Errorf("looking at namespace %s: %w; check --namespace, or create it", g.Namespace, errNoNamespace)
	}
	objects.apply(files.within(g.Namespace, g.Global), g.Now)
	if len(objects.Subscriptions) == 0 {
		objects.Notes = append(objects.Notes, fmt.Sprintf("there is no Subscription in namespace %s", g.Namespace))
	}
	request, err := g.request(ctx, g.Namespace, objects)
	if err != nil {
		return nil, err
	}
	addOperators(ctx, cluster, &request.Request, objects)
	if missing {
		request.Blocked = fmt.Sprintf("namespace %s: %v; check --namespace, or create it, with an OperatorGroup in it", g.Namespace, errNoNamespace)
	}
	return []*Gathered{request}, nil
}

// liveObjects reads the objects of the namespace and, unless all contents are known, the CatalogSources.
func (g *gatherer) liveObjects(ctx context.Context, cluster *Cluster) (*Objects, error) {
	objects, err := cluster.objects(ctx, g.Namespace)
	if err == nil && !g.OnlyContents {
		err = cluster.catalogSources(ctx, objects, g.Namespace, g.Global)
	}
	return objects, err
}

// errNoNamespace means that the namespace does not exist.
var errNoNamespace = errors.New("the cluster has no such namespace")

func (g *gatherer) connect() (*Cluster, error) {
	if g.cluster != nil {
		return g.cluster, nil
	}
	var err error
	g.cluster, err = g.Connect()
	return g.cluster, err
}

// request combines the objects of a namespace and the content of the catalogs.
func (g *gatherer) request(ctx context.Context, namespace string, objects *Objects) (*Gathered, error) {
	s, err := g.scope(ctx, namespace, objects)
	if err != nil {
		return nil, err
	}
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	request := dryrun.NewRequest(objects.of(namespace, g.Global, s.catalogs()))
	if g.Namespace == "" && len(objects.Groups) == 0 {
		// Objects that the files lack are assumed to exist.
		request.Blocked = ""
	}
	request.Catalogs = map[resolution.CatalogKey]string{}
	for key, p := range s.locations {
		request.Catalogs[key] = p.from
	}
	request.Notes = slices.Concat(objects.Notes, s.notes)
	if s.hasUnreadable() {
		request.Notes = append(request.Notes, "while a catalog cannot be read, a supervisor uses the last content that it read")
	}
	return &Gathered{Request: request, scope: s}, nil
}

// scope holds the catalogs that a namespace may use.
type scope struct {
	*gatherer

	locations map[resolution.CatalogKey]*catalogLocation
	notes     []string
}

// catalogLocation is where a catalog is read.
type catalogLocation struct {
	key      resolution.CatalogKey
	override string
	source   *operatorsv1alpha1.CatalogSource
	// running is true if the CatalogSource is in the cluster, so that a hosted one has replicas.
	running bool
	// known is true if the content was read before.
	known bool

	from     string
	snapshot *catalogs.Snapshot
	err      error
}

// scope finds the catalogs and the location of each.
func (g *gatherer) scope(ctx context.Context, namespace string, objects *Objects) (*scope, error) {
	s := &scope{gatherer: g, locations: map[resolution.CatalogKey]*catalogLocation{}}
	live := g.Namespace != ""
	for _, source := range objects.Catalogs {
		key := resolution.CatalogKey{Namespace: source.Namespace, Name: source.Name}
		s.locations[key] = &catalogLocation{key: key, source: source, running: live && source.UID != ""}
	}
	for key, known := range g.Contents {
		p := s.location(key)
		p.known, p.snapshot, p.from, p.err = true, known.Snapshot, known.From, known.Err
	}
	wanted := map[resolution.CatalogKey]string{}
	for _, sub := range objects.Subscriptions {
		wanted[resolution.CatalogKey{Namespace: sub.Spec.CatalogSourceNamespace, Name: sub.Spec.CatalogSource}] = sub.Name
	}
	s.applyOverrides(namespace, wanted)
	if live {
		return s, nil
	}
	for key, subscription := range wanted {
		if s.locations[key] != nil {
			continue
		}
		cluster, err := g.connect()
		if err != nil {
			return nil, fmt.Errorf("subscription %s names catalog %s: no --catalog gives its content, and %w; add --catalog %s=SOURCE", subscription, key, err, key.Name)
		}
		found := &Objects{}
		if err := cluster.catalogSources(ctx, found, namespace, g.Global); err != nil {
			return nil, fmt.Errorf("subscription %s names catalog %s: no --catalog gives its content, and %w; add --catalog %s=SOURCE", subscription, key, err, key.Name)
		}
		for _, source := range found.Catalogs {
			key := resolution.CatalogKey{Namespace: source.Namespace, Name: source.Name}
			if s.locations[key] == nil {
				s.locations[key] = &catalogLocation{key: key, source: source, running: true}
			}
		}
		s.notes = append(s.notes, found.Notes...)
		break
	}
	s.applyOverrides(namespace, wanted)
	return s, nil
}

// applyOverrides sets the locations that --catalog names.
func (s *scope) applyOverrides(namespace string, wanted map[resolution.CatalogKey]string) {
	used := map[CatalogOverride]bool{}
	for key := range wanted {
		g, ok := overrideFor(s.CatalogOverrides, key)
		if !ok {
			continue
		}
		used[g] = true
		if key.Namespace != namespace && key.Namespace != s.Global {
			note := fmt.Sprintf("catalog %s is in scope of namespace %s only where the supervisor runs with --global-catalog-namespace=%s", key, namespace, key.Namespace)
			if !slices.Contains(s.notes, note) {
				s.notes = append(s.notes, note)
			}
		}
		s.location(key).override = g.Source
	}
	for key, p := range s.locations {
		if g, ok := overrideFor(s.CatalogOverrides, key); ok && g.Name != "" {
			used[g], p.override = true, g.Source
		}
	}
	// A catalog that no Subscription names may provide dependencies.
	for _, g := range s.CatalogOverrides {
		if g.Name != "" && !used[g] {
			s.location(resolution.CatalogKey{Namespace: cmp.Or(g.Namespace, s.Global), Name: g.Name}).override = g.Source
		}
	}
}

// hasUnreadable reports whether a catalog of the cluster cannot be read now.
func (s *scope) hasUnreadable() bool {
	for _, p := range s.locations {
		if p.running && p.err != nil {
			return true
		}
	}
	return false
}

func (s *scope) location(key resolution.CatalogKey) *catalogLocation {
	if s.locations[key] == nil {
		s.locations[key] = &catalogLocation{key: key}
	}
	return s.locations[key]
}

// parallel is the number of catalogs that are read at once.
const parallel = 4

// read reads the content of all catalogs. It returns an error if a catalog from --catalog cannot be read. A
// catalog of the cluster that cannot be read is recorded, as the supervisor would do.
func (s *scope) read(ctx context.Context) error {
	var names []string
	var reading []*operatorsv1alpha1.CatalogSource
	for key, p := range s.locations {
		names = append(names, key.String())
		if p.source != nil && p.override == "" && !p.known {
			reading = append(reading, p.source)
		}
	}
	slices.Sort(names)
	if len(reading) > 0 {
		defer s.Progress("Reading " + DescribeCatalogs(reading))()
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, p := range s.locations {
		group.Go(func() error { return s.readLocation(groupCtx, p) })
	}
	err := group.Wait()
	for _, name := range names {
		for key, p := range s.locations {
			if key.String() == name && p.override != "" {
				s.notes = append(s.notes, s.contents[p.override].notes...)
			}
		}
	}
	slices.Sort(s.notes)
	s.notes = slices.Compact(s.notes)
	return err
}

// readLocation reads the content of a catalog.
func (s *scope) readLocation(ctx context.Context, p *catalogLocation) error {
	if p.known {
		return nil
	}
	if p.override != "" {
		p.from = p.override
		r := s.load(ctx, p.override)
		p.snapshot = r.snapshot
		return r.err
	}
	p.snapshot, p.from, p.err = s.readSource(ctx, p)
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("reading catalog %s: %w", p.key, cause)
	}
	return nil
}

// readSource reads the catalog of a CatalogSource from the same place as the supervisor. An unusable one has no
// content, and the reason is recorded.
func (s *scope) readSource(ctx context.Context, p *catalogLocation) (*catalogs.Snapshot, string, error) {
	if _, problem := catalogs.SpecProblem(p.source); problem != "" {
		return nil, "", nil
	}
	if catalogs.Hosted(p.source) && !p.running {
		return nil, "", fmt.Errorf("%w: CatalogSource %s is in a file, nothing serves its content yet", catalogs.ErrNotConnected, p.key)
	}
	return s.cluster.read(ctx, p.source, fmt.Sprintf(", or set --catalog %s=SOURCE", p.key))
}

// load reads a source once.
func (g *gatherer) load(ctx context.Context, source string) *loadedContent {
	g.mu.Lock()
	r := g.contents[source]
	if r == nil {
		r = &loadedContent{}
		g.contents[source] = r
	}
	g.mu.Unlock()
	r.once.Do(func() { r.snapshot, r.notes, r.err = load(ctx, source) })
	return r
}

// catalogs returns the catalogs that were read. A catalog that only --catalog names counts as one with a
// CatalogSource.
func (s *scope) catalogs() []subscription.Catalog {
	out := make([]subscription.Catalog, 0, len(s.locations))
	for key, p := range s.locations {
		source := p.source
		if source == nil {
			source = &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		}
		out = append(out, subscription.Catalog{Source: source, State: catalogs.State{Snapshot: p.snapshot, Err: p.err}, Followed: true})
	}
	return out
}

// CatalogNames returns the names of the catalogs that the Subscriptions in files name, sorted. It returns none
// if the files cannot be read.
func CatalogNames(files []string) []string {
	g := &gatherer{Options: Options{Files: slices.DeleteFunc(slices.Clone(files), func(name string) bool { return name == "-" })}}
	if len(g.Files) == 0 {
		return nil
	}
	objects, err := g.files()
	if err != nil {
		return nil
	}
	var names []string
	for _, sub := range objects.Subscriptions {
		names = append(names, sub.Spec.CatalogSourceNamespace+"/"+sub.Spec.CatalogSource)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
