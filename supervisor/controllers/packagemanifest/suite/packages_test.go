package suite_test

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestPackages reads the packages of two global catalogs and of one of a tenant.
func TestPackages(t *testing.T) {
	w := supervise(t)
	tenant, other := controlplane.Namespace(t), controlplane.Namespace(t)
	shop := w.sells(w.global, "shop", "The Shop", map[string]string{"team": "blue"}, "torch", "lamp")
	w.sells(w.global, "attic", "", nil, "lamp")
	w.sells(tenant, "own", "Own", nil, "lamp", "kettle")
	w.available()
	w.Eventually(func() int { return len(w.rows("-A")) }).Should(gomega.Equal(5))

	t.Run("table", func(t *testing.T) { w.in(t).showsTables(tenant, other) })
	t.Run("selectors", func(t *testing.T) { w.in(t).selects(tenant, other) })
	t.Run("object", func(t *testing.T) { w.in(t).showsObjects(tenant, other) })
	t.Run("icon", func(t *testing.T) { w.in(t).sendsIcons(other) })
	t.Run("users", func(t *testing.T) { w.in(t).admitsUsers(other) })
	t.Run("strangers", func(t *testing.T) { w.in(t).refusesStrangers(other) })
	t.Run("documentation", func(t *testing.T) { w.in(t).explains() })
	t.Run("choice", func(t *testing.T) { w.in(t).choosesCatalogs(tenant, other) })
	t.Run("roles", func(t *testing.T) { w.in(t).admitsReaders(other) })
	t.Run("changes", func(t *testing.T) { w.in(t).followsCatalogs(shop, other) })
}

// choosesCatalogs gets one of several packages of a name many times. Priorities of catalogs change the choice.
func (w *world) choosesCatalogs(tenant, other string) {
	w.T.Helper()
	for range 1000 {
		if got := w.catalogOf(tenant, "lamp"); got != "own" {
			w.T.Fatalf("lamp of %s is from catalog %s, want that of the namespace", tenant, got)
		}
	}
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: w.global, Name: "shop"}}
	for priority, want := range map[int]string{1: "shop", -1: "attic"} {
		w.Modify(source, func() { source.Spec.Priority = priority })
		w.Eventually(func() string { return w.catalogOf(other, "lamp") }).Should(gomega.Equal(want))
		w.Expect(w.catalogOf(tenant, "lamp")).To(gomega.Equal("own"))
	}
}

// catalogOf returns the catalog of a package that a namespace shows.
func (w *world) catalogOf(namespace, name string) string {
	w.T.Helper()
	text, err := w.rest().Get().AbsPath(path(namespace, name)).DoRaw(w.T.Context())
	if err != nil {
		w.T.Fatal(err)
	}
	var p struct {
		Status struct{ CatalogSource string }
	}
	if err := json.Unmarshal(text, &p); err != nil {
		w.T.Fatal(err)
	}
	return p.Status.CatalogSource
}

// admitsReaders reads packages with the role that OLM makes for its package server, which has no icons.
func (w *world) admitsReaders(namespace string) {
	w.T.Helper()
	w.Create(
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "packagemanifests-v1-view"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"packages.operators.coreos.com"}, Resources: []string{"packagemanifests"}, Verbs: []string{"get", "list", "watch"}}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "readers"}, Subjects: []rbacv1.Subject{fixtures.User("reader")},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "packagemanifests-v1-view"},
		},
	)
	w.Expect(w.rows("-n", namespace, "--as=reader")).To(gomega.HaveLen(3))
	out, err := w.run("get", "--raw", path(namespace, "lamp/icon"), "--as=reader")
	if err == nil {
		w.T.Errorf("the icon without permission: %s", out)
	}
	w.Expect(out).To(gomega.ContainSubstring("Forbidden"))
}

// followsCatalogs changes, stops and deletes a catalog of two packages.
func (w *world) followsCatalogs(shop *fakecatalog.Server, other string) {
	w.T.Helper()
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: w.global, Name: "shop"}}
	list := func(field string) string {
		return w.kubectl("get", "packagemanifests", "-n", other, "-l", "catalog=shop", "-o", "jsonpath={.items[*]."+field+"}")
	}
	heads := func() string { return list("status.channels[*].currentCSV") }
	reads := shop.Listed() + shop.Pages()
	w.Modify(source, func() { source.Spec.DisplayName = "Newest" })
	w.Eventually(func() string {
		return w.kubectl("get", "packagemanifest", "torch", "-n", other, "-o", "jsonpath={.status.catalogSourceDisplayName}")
	}).WithTimeout(10 * time.Second).Should(gomega.Equal("Newest"))
	w.Expect(w.rows("-n", other, "torch")[0]).To(gomega.ContainElement("Newest"))
	if n := shop.Listed() + shop.Pages(); n != reads {
		w.T.Errorf("the name of the catalog changed, and its content was read %d times", n-reads)
	}

	// Each reading of the new content fails at its second page.
	shop.Paginate(1)
	shop.Abort(1000)
	shop.Serve(sold("torch", 3), sold("lamp", 3))
	w.Eventually(shop.Pages).Should(gomega.BeNumerically(">", reads+4))
	w.Expect(heads()).To(gomega.Equal("lamp.v2 torch.v2"))
	shop.Abort(0)
	w.Eventually(func() string {
		found := heads()
		if found != "lamp.v2 torch.v2" && found != "lamp.v3 torch.v3" {
			w.T.Errorf("a mixture of contents: %s", found)
		}
		return found
	}).Should(gomega.Equal("lamp.v3 torch.v3"))

	listed := list("status")
	shop.Stop()
	w.Eventually(func() int {
		return strings.Count(list("metadata.annotations"), "chandlery.dev/catalog-unavailable-since")
	}).Should(gomega.Equal(2))
	w.Expect(list("status")).To(gomega.Equal(listed))
	w.Expect(w.rows("-n", other)).To(gomega.HaveLen(3))
	w.Expect(w.Delete(w.T.Context(), source)).To(gomega.Succeed())
	w.Eventually(func() [][]string { return w.rows("-n", other) }).WithTimeout(10 * time.Second).Should(gomega.HaveLen(1))
}

// in returns the same world for a subtest.
func (w *world) in(t *testing.T) *world {
	t.Helper()
	sub := *w
	sub.World = w.In(t)
	return &sub
}

func (w *world) showsTables(tenant, other string) {
	w.T.Helper()
	lines := fieldsOf(w.kubectl("get", "packagemanifests", "-n", other))
	w.Expect(lines[0]).To(gomega.Equal([]string{"NAME", "CATALOG", "AGE"}))
	global := []string{"lamp", "lamp", "torch"}
	for namespace, want := range map[string][]string{
		other: global, controlplane.Namespace(w.T): global, "none": global, tenant: {"kettle", "lamp", "lamp", "lamp", "torch"},
	} {
		var names []string
		for _, row := range w.rows("-n", namespace) {
			names = append(names, row[0])
		}
		if diff := cmp.Diff(want, names); diff != "" {
			w.T.Errorf("packages in %s (-want +got):\n%s", namespace, diff)
		}
	}
	if row := lines[3]; row[0] != "torch" || row[1] != "The" || row[2] != "Shop" {
		w.T.Errorf("row of torch: %v", row)
	}
	if row := lines[1]; len(row) != 2 {
		w.T.Errorf("row of lamp, whose catalog has no name: %v", row)
	}
}

func (w *world) selects(tenant, other string) {
	w.T.Helper()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-l", "catalog=shop"}, "shop/lamp shop/torch"},
		{[]string{"-l", "team=blue"}, "shop/lamp shop/torch"},
		{[]string{"-l", "catalog=attic", "--field-selector", "metadata.name=lamp"}, "attic/lamp"},
		{[]string{"-l", "catalog=shop", "--field-selector", "metadata.name=lamp"}, "shop/lamp"},
		{[]string{"-l", "catalog=attic", "--field-selector", "metadata.name=torch"}, ""},
		{[]string{"-l", "team=blue", "--field-selector", "metadata.name=lamp"}, "shop/lamp"},
		{[]string{"--field-selector", "metadata.namespace=" + other}, "attic/lamp shop/lamp shop/torch"},
		{[]string{"--field-selector", "metadata.namespace=" + tenant}, ""},
		{[]string{"-l", "operatorframework.io/os.linux=supported"}, "attic/lamp shop/lamp shop/torch"},
	} {
		found := w.kubectl(append([]string{
			"get", "packagemanifests", "-n", other, "-o", "jsonpath={range .items[*]}{.status.catalogSource}/{.metadata.name} {end}",
		}, test.args...)...)
		if got := strings.TrimSpace(found); got != test.want {
			w.T.Errorf("%v finds %q, want %q", test.args, got, test.want)
		}
	}
	out, err := w.run("get", "packagemanifests", "-n", other, "--field-selector", "spec.x=1")
	if err == nil {
		w.T.Errorf("an unknown field: %s", out)
	}
	w.Expect(out).To(gomega.ContainSubstring(`"spec.x" is not a known field selector`))
}

func (w *world) showsObjects(tenant, other string) {
	w.T.Helper()
	var p struct {
		Metadata struct{ Namespace string }
		Status   struct {
			CatalogSource, CatalogSourceNamespace, DefaultChannel string
			Channels                                              []struct {
				Name, CurrentCSV string
				CurrentCSVDesc   map[string]any
				Entries          []map[string]any
			}
		}
	}
	for namespace, catalog := range map[string]string{tenant: "own", other: "attic"} {
		for range 5 {
			if err := json.Unmarshal([]byte(w.kubectl("get", "packagemanifest", "-n", namespace, "lamp", "-o", "json")), &p); err != nil {
				w.T.Fatal(err)
			}
			if p.Status.CatalogSource != catalog || p.Metadata.Namespace != namespace {
				w.T.Errorf("lamp in %s: %+v", namespace, p)
			}
		}
	}
	channel := p.Status.Channels[0]
	want := []map[string]any{{"name": "lamp.v2", "version": "2.0.0"}, {"name": "lamp.v1", "version": "1.0.0"}}
	if diff := cmp.Diff(want, channel.Entries); diff != "" || channel.Name != "stable" || channel.CurrentCSV != "lamp.v2" || p.Status.DefaultChannel != "stable" {
		w.T.Errorf("channel %+v, entries (-want +got):\n%s", channel, diff)
	}
	if channel.CurrentCSVDesc["displayName"] != "Lamp" || channel.CurrentCSVDesc["icon"] != nil {
		w.T.Errorf("description: %v", channel.CurrentCSVDesc)
	}
	out, err := w.run("get", "packagemanifest", "-n", other, "kettle")
	if err == nil {
		w.T.Errorf("kettle in %s: %s", other, out)
	}
	w.Expect(out).To(gomega.ContainSubstring(`packagemanifests.packages.operators.coreos.com "kettle" not found`))
	out, err = w.run("get", "packagemanifests", "-n", other, "-w")
	if err == nil {
		w.T.Errorf("a watch: %s", out)
	}
	list, problem, _ := strings.Cut(out, "Error from server")
	w.Expect(fieldsOf(list)).To(gomega.HaveLen(4), "the header and each package before the error")
	w.Expect(problem).To(gomega.ContainSubstring("MethodNotAllowed"))
}

// path returns the path of a package as a namespace shows it.
func path(namespace, pkg string) string {
	return "/apis/packages.operators.coreos.com/v1/namespaces/" + namespace + "/packagemanifests/" + pkg
}

func (w *world) sendsIcons(namespace string) {
	w.T.Helper()
	w.Expect(w.kubectl("get", "--raw", path(namespace, "lamp/icon?resourceVersion=lamp.stable.lamp.v2"))).To(gomega.Equal("icon"))
	tag := icon(w, namespace, "lamp").tag
	if known := icon(w, namespace, "lamp", "If-None-Match="+tag); tag == "" || known.status != http.StatusNotModified {
		w.T.Errorf("the icon with tag %q has status %d", tag, known.status)
	}
	out, err := w.run("get", "--raw", path(namespace, "kettle/icon"))
	if err == nil {
		w.T.Errorf("icon of no package: %s", out)
	}
	w.Expect(out).To(gomega.ContainSubstring("NotFound"))
}

// iconAnswer is the answer to a request for an icon.
type iconAnswer struct {
	status         int
	mediaType, tag string
}

// icon requests the icon of a package, with headers NAME=VALUE.
func icon(w *world, namespace, pkg string, headers ...string) iconAnswer {
	w.T.Helper()
	c, err := rest.HTTPClientFor(w.Config)
	if err != nil {
		w.T.Fatal(err)
	}
	req, err := http.NewRequestWithContext(w.T.Context(), http.MethodGet, w.Config.Host+path(namespace, pkg+"/icon"), http.NoBody)
	if err != nil {
		w.T.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, "=")
		req.Header.Set(name, value)
	}
	reply, err := c.Do(req)
	if err != nil {
		w.T.Fatal(err)
	}
	_ = reply.Body.Close()
	return iconAnswer{reply.StatusCode, reply.Header.Get("Content-Type"), reply.Header.Get("ETag")}
}

// admitsUsers reads packages as users with different roles.
func (w *world) admitsUsers(namespace string) {
	w.T.Helper()
	w.kubectl("apply", "--server-side", "-f", "../../../../deploy/prerequisites/users.yaml")
	w.Create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "viewers"}, Subjects: []rbacv1.Subject{fixtures.User("viewer")},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	})
	w.Expect(w.rows("-n", namespace, "--as=viewer")).To(gomega.HaveLen(3))
	shown := w.kubectl("get", "packagemanifests", "-n", namespace, "--as=viewer", "-o",
		"jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}/{.status.catalogSourceNamespace} {end}")
	of := func(name string) string { return namespace + "/" + name + "/" + w.global + " " }
	w.Expect(shown).To(gomega.Equal(of("lamp") + of("lamp") + of("torch")))
	w.Expect(w.kubectl("get", "--raw", path(namespace, "lamp/icon"), "--as=viewer")).To(gomega.Equal("icon"))
	for _, args := range [][]string{
		{"get", "packagemanifests", "-n", namespace, "--as=stranger"},
		{"get", "packagemanifest", "lamp", "-n", namespace, "--as=stranger"},
		{"get", "packagemanifest", "lamp", "-n", w.global, "--as=viewer"},
		{"get", "--raw", path(namespace, "lamp/icon"), "--as=stranger"},
		{"get", "packagemanifests", "-n", w.global, "--as=viewer"},
	} {
		out, err := w.run(args...)
		if err == nil {
			w.T.Errorf("%v: %s", args, out)
		}
		w.Expect(out).To(gomega.ContainSubstring("Forbidden"))
	}
}

// viewerToken returns a token of a ServiceAccount that may read the packages of a namespace.
func viewerToken(w *world, namespace string) string {
	w.T.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dashboard"}}
	w.Create(account, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dashboards"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	})
	request := &authenticationv1.TokenRequest{}
	w.Expect(w.SubResource("token").Create(w.T.Context(), account, request)).To(gomega.Succeed())
	w.Expect(request.Status.Token).NotTo(gomega.BeEmpty())
	return request.Status.Token
}

// refusesStrangers calls the server without the certificate of the front proxy. The API server admits the token.
func (w *world) refusesStrangers(namespace string) {
	w.T.Helper()
	token := viewerToken(w, namespace)
	holder := rest.AnonymousClientConfig(w.Config)
	holder.BearerToken = token
	c, err := kubernetes.NewForConfig(holder)
	w.Expect(err).NotTo(gomega.HaveOccurred())
	w.EventuallySucceeds(func(g gomega.Gomega) {
		g.Expect(c.RESTClient().Get().AbsPath(path(namespace, "lamp")).Do(w.T.Context()).Error()).To(gomega.Succeed())
	})
	cert, key, err := certutil.GenerateSelfSignedCertKey("front-proxy-client", nil, nil)
	w.Expect(err).NotTo(gomega.HaveOccurred())
	foreign, err := tls.X509KeyPair(cert, key)
	w.Expect(err).NotTo(gomega.HaveOccurred())
	admin := http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}
	for name, stranger := range map[string]struct {
		header       http.Header
		certificates []tls.Certificate
	}{
		"no credentials":                           {header: http.Header{}},
		"headers without a certificate":            {header: admin},
		"headers with a certificate of another CA": {header: admin, certificates: []tls.Certificate{foreign}},
		"a token": {header: http.Header{"Authorization": {"Bearer " + token}}},
	} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: stranger.certificates}}
		req, err := http.NewRequestWithContext(w.T.Context(), http.MethodGet, "https://"+w.at+path(namespace, "lamp"), http.NoBody)
		if err != nil {
			w.T.Fatal(err)
		}
		req.Header = stranger.header
		reply, err := transport.RoundTrip(req)
		if err != nil {
			w.T.Fatal(err)
		}
		_ = reply.Body.Close()
		transport.CloseIdleConnections()
		if reply.StatusCode != http.StatusUnauthorized {
			w.T.Errorf("%s: status %d", name, reply.StatusCode)
		}
	}
}

// explains reads the documentation of a field, and which verbs there are.
func (w *world) explains() {
	w.T.Helper()
	w.Eventually(func() string {
		out, _ := w.run("explain", "packagemanifest.status.channels.entries")
		return out
	}).Should(gomega.ContainSubstring("Name of the ClusterServiceVersion."))
	if out := w.kubectl("explain", "packagemanifest"); !strings.Contains(out, "A package of a catalog") {
		w.T.Errorf("the kind is not described:\n%s", out)
	}
	var resources metav1.APIResourceList
	if err := json.Unmarshal([]byte(w.kubectl("get", "--raw", "/apis/packages.operators.coreos.com/v1")), &resources); err != nil {
		w.T.Fatal(err)
	}
	got := map[string][]string{}
	for _, r := range resources.APIResources {
		got[r.Name+" "+r.SingularName+" "+r.Kind] = r.Verbs
	}
	want := map[string][]string{"packagemanifests packagemanifest PackageManifest": {"get", "list"}, "packagemanifests/icon  PackageManifest": {"get"}}
	if diff := cmp.Diff(want, got); diff != "" {
		w.T.Errorf("resources (-want +got):\n%s", diff)
	}
}
