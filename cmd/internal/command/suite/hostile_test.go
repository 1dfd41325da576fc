package suite_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/cmd/internal/command/all"
)

// hostile is text that a container, a bundle or a tenant may write to control the terminal of a reader.
const hostile = "x\x1b[2J\x1b]0;title\a\u009b35m\u202eevil\u2066\x7f\r\n\x1b[8m"

// colours matches the control sequences with which the programs color words.
var colours = regexp.MustCompile(`\x1b\[(0|1|2|31|32|33)m`)

// createHostile creates objects with hostile texts everywhere.
func createHostile(w *world) {
	w.T.Helper()
	w.well()
	w.waits()
	ctx := w.T.Context()
	p := w.plan()
	p.Status.Message = hostile
	p.Status.Plan[0].Resource.Manifest = `{"kind":"ClusterServiceVersion","spec":{"version":"1.0.0","displayName":` + quoted(w.T, hostile) + `}}`
	p.Status.Plan[1].Resource.Manifest = `{"kind":"ClusterRole","rules":[{"apiGroups":[""],"resources":[` + quoted(w.T, hostile) + `],"verbs":["get"]}]}`
	p.Status.BundleLookups = []operatorsv1alpha1.BundleLookup{{
		Path: hostile, Identifier: hostile, CatalogSourceRef: &corev1.ObjectReference{Namespace: w.Namespace, Name: "dark"},
		Conditions: []operatorsv1alpha1.BundleLookupCondition{{Type: operatorsv1alpha1.BundleLookupPending, Status: corev1.ConditionTrue, Reason: "Bad", Message: hostile}},
	}}
	p.Status.Conditions = []operatorsv1alpha1.InstallPlanCondition{{
		Type: operatorsv1alpha1.InstallPlanInstalled, Status: corev1.ConditionFalse, Reason: "InstallComponentFailed", Message: hostile,
		LastUpdateTime: new(metav1.Now()), LastTransitionTime: new(metav1.Now()),
	}}
	w.status(p)
	source := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "dark"},
		Spec: operatorsv1alpha1.CatalogSourceSpec{
			SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: hostile, DisplayName: hostile, Publisher: hostile, Description: hostile,
		},
	}
	w.Create(source)
	source.Status.Message, source.Status.Reason = hostile, "SpecInvalidError"
	source.Status.GRPCConnectionState = &operatorsv1alpha1.GRPCConnectionState{Address: hostile, LastObservedState: hostile}
	w.status(source)
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := w.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: "lamp.v1"}, csv); err != nil {
		w.T.Fatal(err)
	}
	csv.Spec.DisplayName = hostile
	if err := w.Update(ctx, csv); err != nil {
		w.T.Fatal(err)
	}
	csv.Status.Phase, csv.Status.Reason, csv.Status.Message = operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonComponentFailed, hostile
	w.status(csv)
	w.change("my-lamp", func(o client.Object) error { return w.Status().Update(ctx, o) }, func(sub *operatorsv1alpha1.Subscription) {
		sub.Status.State = operatorsv1alpha1.SubscriptionStateFailed
		sub.Status.SetCondition(operatorsv1alpha1.SubscriptionCondition{
			Type: operatorsv1alpha1.SubscriptionResolutionFailed, Status: corev1.ConditionTrue, Reason: hostile, Message: hostile,
		})
	})
	w.subscribe("unreadable")
	w.annotate("unreadable", hostile)
}

// quoted returns a text as JSON.
func quoted(t *testing.T, text string) string {
	t.Helper()
	encoded, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// TestHostileTexts runs every command in a cluster whose objects all try to control the terminal.
func TestHostileTexts(t *testing.T) {
	w := newWorld(t)
	createHostile(w)
	catalog := t.TempDir()
	text := lampCatalog +
		"---\nschema: olm.deprecations\npackage: lamp\nentries: [{reference: {schema: olm.package}, message: " + quoted(t, hostile) + "}]\n"
	if err := os.WriteFile(filepath.Join(catalog, "lamp.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	forms := []string{"human", "wide", "json", "yaml"}
	seen := map[string]bool{}
	for _, tt := range []struct {
		args  []string
		forms []string
		// shows reports whether the texts are part of the output.
		shows bool
	}{
		{args: []string{"status", "-n", w.Namespace, "--color=always"}, forms: forms, shows: true},
		{args: []string{"explain", "my-lamp", "-n", w.Namespace, "--color=always"}, forms: forms, shows: true},
		{args: []string{"explain", "csv/lamp.v1", "catalogsource/dark", "installplan/install-aaa", "-n", w.Namespace, "--color=always"}, forms: forms, shows: true},
		{args: []string{"explain", hostile, "-n", w.Namespace, "--color=always"}, forms: forms, shows: true},
		{args: []string{"history", "-n", w.Namespace, "--color=always"}, forms: forms, shows: true},
		{args: []string{"approve", "my-lamp", "-n", w.Namespace, "--dry-run", "--color=always"}, forms: forms},
		{args: []string{"plan", "-n", w.Namespace, "--catalog=" + catalog, "--color=always"}, forms: append([]string{"mermaid", "dot", "svg"}, forms...)},
		{args: []string{"discover", "--selector=" + hostile, "widgets.example.com", "--color=always"}, forms: forms},
		{args: []string{"discover", hostile, "--color=always"}, forms: forms, shows: true},
		{args: []string{"search", hostile, "--color=always"}, forms: forms},
		{args: []string{"install", hostile, "-n", w.Namespace, "--dry-run", "--color=always"}, forms: forms},
		{args: []string{"upgrade", "my-lamp", "-n", w.Namespace, "--dry-run", "--color=always"}, forms: forms},
		{args: []string{"remove", "my-lamp", "-n", w.Namespace, "--dry-run", "--color=always"}, forms: forms},
		{args: []string{"catalog", "list", "-n", w.Namespace, "--color=always"}, forms: forms},
		{args: []string{"wait", "my-lamp", "-n", w.Namespace, "--timeout=1s", "--color=always"}, forms: forms},
		{args: []string{"support-bundle", "-n", w.Namespace}, forms: []string{""}},
		{args: []string{"migrate", "--dry-run", "--color=always"}, forms: forms},
		{args: []string{"takeover", "--dry-run", "--color=always"}, forms: forms},
		{args: []string{"handback", "--dry-run", "--color=always"}, forms: forms},
		{args: []string{"uninstall", "--dry-run", "--everything", "--color=always"}, forms: forms},
		{args: []string{"status", "--kubeconfig=" + hostile}, forms: []string{""}, shows: true},
	} {
		seen[tt.args[0]] = true
		// Both programs have the same commands. The supervisor writes every form, and the plugin the default form.
		for i, form := range append(slices.Clone(tt.forms), "") {
			program := callers()[0]
			if i == len(tt.forms) {
				program = callers()[1]
			}
			t.Run(strings.Join([]string{tt.args[0], form, program.name}, "/"), func(t *testing.T) {
				args := tt.args
				if form != "" {
					args = append(slices.Clone(args), "-o", form)
				}
				got := program.call(t, w.kubeconfig, args...)
				checkOutput(t, got, form, tt.shows)
			})
		}
	}
	for _, cmd := range all.Commands("lamp", "LAMP", "test") {
		if !seen[cmd.Name()] {
			t.Errorf("command %s is not tried", cmd.Name())
		}
	}
}

// checkOutput checks that an output has no control sequences but colors, and that machine-readable
// output is a valid document.
func checkOutput(t *testing.T, got answer, form string, shows bool) {
	t.Helper()
	output := got.out + got.log
	for _, r := range colours.ReplaceAllString(output, "") {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			t.Fatalf("%q passes in %q", r, output)
		}
	}
	if shows && !strings.Contains(output, "evil") {
		t.Errorf("the texts do not show: %s", output)
	}
	var document any
	var err error
	switch form {
	case "json":
		if got.out != "" {
			err = json.Unmarshal([]byte(got.out), &document)
		}
	case "yaml":
		err = yaml.Unmarshal([]byte(got.out), &document)
	}
	if err != nil {
		t.Errorf("%v: %s", err, got.out)
	}
}
