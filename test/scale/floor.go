package scale

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// modelNamespace is the namespace whose objects are copied.
const modelNamespace = "scale-model"

// Floor is a control plane on which a plain client writes what an installation leaves. A supervisor
// installs the operator in one namespace, the model. For each further namespace, the client writes
// every object that the supervisor has created or changed there, and its status. No installation
// can write these objects with fewer requests.
type Floor struct {
	cluster *Cluster
	// client uses the account whose requests are counted.
	client client.Client
	// templates are the objects of the model.
	templates []template
}

// StartFloor starts all processes.
func StartFloor(ctx context.Context, o Options) (*Floor, error) {
	c, err := Start(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Floor{cluster: c}, nil
}

// Stop stops all processes.
func (f *Floor) Stop() error { return f.cluster.Stop() }

// Prepare creates namespaces with their OperatorGroups.
func (f *Floor) Prepare(ctx context.Context, names []string) error {
	return f.cluster.Prepare(ctx, names)
}

// Install writes the objects of an installation for each of some prepared namespaces, waits until
// the Deployments are available, and counts the cost. before is the number of namespaces that
// already have them. If it is zero, the supervisor installs them and then ends.
func (f *Floor) Install(ctx context.Context, before int, names []string) (*Batch, error) {
	if before == 0 {
		first, err := f.cluster.Install(ctx, before, names)
		if err != nil {
			return nil, err
		}
		// The first installation also creates the shared objects.
		if err := f.cluster.Prepare(ctx, []string{modelNamespace}); err != nil {
			return nil, err
		}
		b, err := f.cluster.Install(ctx, len(names), []string{modelNamespace})
		if err != nil {
			return nil, err
		}
		return first, f.learn(ctx, b)
	}
	b, err := f.cluster.plane.batch(ctx, names, f.install)
	if err != nil {
		return nil, err
	}
	b.Before = before
	return b, nil
}

// learn stops the supervisor and reads the objects that it has written for the model.
func (f *Floor) learn(ctx context.Context, b *Batch) error {
	p := f.cluster.plane
	if err := p.measured.Stop(grace); err != nil {
		return fmt.Errorf("ending the supervisor: %w", err)
	}
	p.measured = nil
	kubeconfig, err := p.kubeconfig("system:masters")
	if err != nil {
		return err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	cfg.QPS = -1
	if f.client, err = client.New(cfg, client.Options{Scheme: p.client.Scheme()}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	for _, w := range written(b.Requests) {
		t, err := f.template(ctx, w)
		if err != nil {
			return err
		}
		f.templates = append(f.templates, t)
	}
	_, err = p.idle(ctx)
	return err
}

func (f *Floor) template(ctx context.Context, w writtenObject) (template, error) {
	gvk, err := f.client.RESTMapper().KindFor(schema.ParseGroupResource(w.resource).WithVersion(""))
	if err != nil {
		return template{}, fmt.Errorf("finding the kind of %s: %w", w.resource, err)
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	if err := f.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: w.name}, o); err != nil {
		return template{}, fmt.Errorf("reading what an installation has written: %w", err)
	}
	return newTemplate(o, w, modelNamespace)
}

func (f *Floor) install(ctx context.Context, names []string) error {
	if err := each(ctx, names, f.write); err != nil {
		return err
	}
	return f.cluster.plane.reached(ctx, names, &appsv1.DeploymentList{}, func(o client.Object) bool {
		d, is := o.(*appsv1.Deployment)
		return is && available(d)
	})
}

// write creates a Subscription, as a user does, and writes all objects of the installation in its namespace.
func (f *Floor) write(ctx context.Context, namespace string) error {
	sub := subscription(namespace, channelStable)
	if err := f.cluster.plane.create(ctx, sub); err != nil {
		return err
	}
	r := newReplacements(modelNamespace, namespace)
	r.addSubscription(f.templates, sub)
	for _, t := range f.templates {
		if err := f.apply(ctx, t, r); err != nil {
			return fmt.Errorf("writing %s %s for namespace %s: %w", t.kind, t.name, namespace, err)
		}
	}
	return nil
}

// apply writes an object of a template and its status.
func (f *Floor) apply(ctx context.Context, t template, r *replacements) error {
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(r.replace(t.object)), o); err != nil {
		return fmt.Errorf("reading the template: %w", err)
	}
	status, hasStatus := o.Object["status"]
	delete(o.Object, "status")
	switch {
	case t.patch != "":
		if err := f.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(r.replace(t.patch)))); err != nil {
			return err //nolint:wrapcheck // The caller names the object.
		}
	default:
		if renamed := t.rename(r); renamed != "" {
			o.SetName(renamed)
		}
		if err := f.client.Create(ctx, o); err != nil {
			return err //nolint:wrapcheck // The caller names the object.
		}
		r.add(string(t.uid), string(o.GetUID()))
	}
	if !t.status || !hasStatus {
		return nil
	}
	text, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encoding the status: %w", err)
	}
	return f.client.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, text)) //nolint:wrapcheck // The caller names the object.
}

func available(d *appsv1.Deployment) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
