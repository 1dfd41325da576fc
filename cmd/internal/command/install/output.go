package install

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/console"
)

// outcome is what the command did.
type outcome string

// The outcomes.
const (
	outcomeBlocked   outcome = "blocked"
	outcomePlanned   outcome = "planned"
	outcomeCreated   outcome = "created"
	outcomeInstalled outcome = "installed"
	outcomeFailed    outcome = "failed"
)

// readInventory reads the namespace of a request. It returns an error for a namespace that is being deleted.
func readInventory(ctx context.Context, c client.Client, r *request) (*inventory, error) {
	live, err := readNamespace(ctx, c, r.namespace)
	if err != nil {
		return nil, err
	}
	if live != nil && live.DeletionTimestamp != nil {
		return nil, negative("namespace %s is being deleted; wait until it is gone", r.namespace)
	}
	o := &inventory{exists: live != nil}
	for _, target := range r.targets {
		live, err := readNamespace(ctx, c, target)
		if err != nil {
			return nil, err
		}
		if live == nil {
			o.absentTargets = append(o.absentTargets, target)
		}
	}
	var groups operatorsv1.OperatorGroupList
	if err := c.List(ctx, &groups, client.InNamespace(r.namespace)); err != nil {
		return nil, fmt.Errorf("listing the OperatorGroups of namespace %s: %w", r.namespace, err)
	}
	var subscriptions operatorsv1alpha1.SubscriptionList
	if err := c.List(ctx, &subscriptions, client.InNamespace(r.namespace)); err != nil {
		return nil, fmt.Errorf("listing the Subscriptions of namespace %s: %w", r.namespace, err)
	}
	o.groups, o.subscriptions = groups.Items, subscriptions.Items
	return o, nil
}

// readNamespace returns the metadata of a namespace; nil if it does not exist. A namespace that the user may not read
// counts as existing.
func readNamespace(ctx context.Context, c client.Client, name string) (*metav1.PartialObjectMetadata, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	switch err := c.Get(ctx, client.ObjectKey{Name: name}, live); {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // a namespace that does not exist is no error
	case err != nil && !apierrors.IsForbidden(err):
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return live, nil
}

// show prints a plan. The machine-readable forms print everything at the end, or here if the plan is blocked.
func (o *options) show(out io.Writer, p *plan) error {
	if o.output.ForMachines() {
		if p.Problem != "" {
			return o.output.Document(out, p)
		}
		return nil
	}
	var b strings.Builder
	if len(p.Create) > 0 {
		b.WriteString(o.output.Paint(out).Bold("To create:") + "\n")
	}
	for _, object := range p.Create {
		b.WriteString(console.Wrap("  - ", "    ", describe(object)))
	}
	if len(p.Create) == 0 {
		fmt.Fprintf(&b, "Subscription %s/%s exists.\n", o.request.namespace, p.Subscription)
	}
	b.WriteByte('\n')
	if err := p.Plan.Table(&b); err != nil {
		return err
	}
	return write(out, b.String())
}

// outcomeOf returns the outcome of a command that ends with an error before it changes anything.
func outcomeOf(err error) outcome {
	if console.CodeOf(err) == console.Negative {
		return outcomeBlocked
	}
	return outcomeFailed
}

// withDocument prints the document of the machine-readable forms for an error, and returns the error.
func (o *options) withDocument(out io.Writer, p *plan, done outcome, err error) error {
	p.Outcome, p.Problem = done, cmp.Or(p.Problem, console.Problem(err))
	return o.output.WithDocument(out, p, err)
}

// finish prints what the command did.
func (o *options) finish(out io.Writer, p *plan, done outcome) error {
	p.Outcome = done
	if o.output.ForMachines() {
		return o.output.Document(out, p)
	}
	switch name := o.request.namespace + "/" + p.Subscription; done {
	case outcomePlanned:
		return write(out, "\nNothing was changed (dry run).\n")
	case outcomeCreated:
		next, end := "Wait for it: "+o.request.program+" wait ", ""
		if o.approval == string(operatorsv1alpha1.ApprovalManual) {
			next, end = "Approve its InstallPlan: "+o.request.program+" approve ", " --wait"
		}
		return write(out, fmt.Sprintf("\nSubscription %s exists. %s%s -n %s%s\n", name, next, p.Subscription, o.request.namespace, end))
	default:
		return write(out, fmt.Sprintf("\nSubscription %s is installed.\n", name))
	}
}

func write(out io.Writer, text string) error {
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
