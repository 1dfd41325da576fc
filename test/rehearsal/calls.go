package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const (
	// callInterval is the time between the starts of two calls of a kind: five per second.
	callInterval = 200 * time.Millisecond
	// callTimeout is the deadline of a call.
	callTimeout = 5 * time.Second
)

// call is a call of an operator or of OLM's package server.
type call struct {
	name string
	do   func(context.Context) error
}

// callers make calls in the background and count them.
type callers struct {
	mu     sync.Mutex
	made   map[string]int
	failed []string
	stop   context.CancelFunc
	all    sync.WaitGroup
}

// result is the number of calls of each kind, and the texts of those that failed.
type result struct {
	made   map[string]int
	failed []string
}

// startCalls starts five calls of each kind per second.
func startCalls(ctx context.Context, cfg *rest.Config) (*callers, error) {
	all, err := calls(cfg)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	c := &callers{made: map[string]int{}, stop: stop}
	for _, one := range all {
		c.all.Go(func() { c.repeat(ctx, one) })
	}
	return c, nil
}

// repeat starts a call at each tick, whether or not earlier ones have finished.
func (c *callers) repeat(ctx context.Context, one call) {
	ticker := time.NewTicker(callInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		c.all.Go(func() {
			// A call in progress at the end may still succeed.
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
			defer cancel()
			begun := time.Now()
			err := one.do(limited)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.made[one.name]++
			if err != nil {
				c.failed = append(c.failed, fmt.Sprintf("%s %s: %v", begun.Format("15:04:05.0"), one.name, err))
			}
		})
	}
}

// take returns the result since the last call of take.
func (c *callers) take() result {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := result{made: c.made, failed: c.failed}
	c.made, c.failed = map[string]int{}, nil
	return r
}

// end stops the calls and waits for those in progress.
func (c *callers) end() {
	c.stop()
	c.all.Wait()
}

// total returns the number of calls.
func (r result) total() int {
	sum := 0
	for _, n := range r.made {
		sum += n
	}
	return sum
}

// calls returns one call of each webhook, conversion and aggregated API.
func calls(cfg *rest.Config) ([]call, error) {
	cfg.QPS = -1
	objects, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client of the operators: %w", err)
	}
	transport, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client of the operators: %w", err)
	}
	paths, err := rest.RESTClientForConfigAndClient(rawConfig(cfg), transport)
	if err != nil {
		return nil, fmt.Errorf("making a client of the operators: %w", err)
	}
	all := []call{{"package server", func(ctx context.Context) error {
		return answer(ctx, paths, "/apis/packages.operators.coreos.com/v1/namespaces/default/packagemanifests/plain", `"packageName":"plain"`)
	}}}
	list := operators()
	for i := range list {
		o := &list[i]
		switch o.webhook {
		case "ValidatingAdmissionWebhook":
			all = append(all, call{"validation by " + o.name, func(ctx context.Context) error { return refused(ctx, objects, o) }})
		case "MutatingAdmissionWebhook":
			all = append(all, call{"mutation by " + o.name, func(ctx context.Context) error { return mutated(ctx, objects, o) }})
		case conversion:
			all = append(all, call{"conversion by " + o.name, func(ctx context.Context) error { return converted(ctx, objects, o) }})
		}
		if o.api {
			all = append(all, call{"API of " + o.name, func(ctx context.Context) error {
				return answer(ctx, paths, "/apis/served"+o.group()+"/v1", `"kind":"Served`+o.name+`"`)
			}})
		}
	}
	return all, nil
}

// rawConfig returns a configuration for requests of paths.
func rawConfig(cfg *rest.Config) *rest.Config {
	c := rest.CopyConfig(cfg)
	c.GroupVersion = &schema.GroupVersion{Version: "v1"}
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return c
}

// answer fails if the answer of a path lacks a text.
func answer(ctx context.Context, c rest.Interface, path, text string) error {
	body, err := c.Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(ctx)
	if err == nil && !strings.Contains(string(body), text) {
		err = fmt.Errorf("the answer lacks %s: %.200s", text, body)
	}
	return err
}

// instance returns an object of the kind of an operator.
func instance(o *operator, name string, spec object) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{
		"apiVersion": o.group() + "/v1", "kind": o.kind(), "metadata": object{"namespace": o.namespace, "name": name}, "spec": spec,
	}}
}

// convertedObject returns the object that is stored in version v1.
func convertedObject() *unstructured.Unstructured {
	list := operators()
	o := &list[slices.IndexFunc(list, func(o operator) bool { return o.webhook == conversion })]
	return instance(o, "stored", object{"v1": "kept"})
}

func (o *operator) resourceOf(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: o.group(), Version: version, Resource: o.resource()}
}

func create(ctx context.Context, c dynamic.Interface, o *operator, spec object) (*unstructured.Unstructured, error) {
	return c.Resource(o.resourceOf("v1")).Namespace(o.namespace).Create(ctx, instance(o, "tried", spec), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// refused fails unless the webhook refuses an object.
func refused(ctx context.Context, c dynamic.Interface, o *operator) error {
	_, err := create(ctx, c, o, object{"refused": true})
	if err == nil {
		return errors.New("the webhook was not called")
	}
	if !strings.Contains(err.Error(), "refused by the rehearsal") {
		return err
	}
	return nil
}

// mutated fails unless the webhook changes an object.
func mutated(ctx context.Context, c dynamic.Interface, o *operator) error {
	made, err := create(ctx, c, o, object{})
	if err != nil {
		return err
	}
	if value, _, _ := unstructured.NestedString(made.Object, "spec", "mutated"); value != "yes" {
		return errors.New("the webhook was not called")
	}
	return nil
}

// converted fails unless an object is read in the version in which it is not stored.
func converted(ctx context.Context, c dynamic.Interface, o *operator) error {
	read, err := c.Resource(o.resourceOf("v2")).Namespace(o.namespace).Get(ctx, convertedObject().GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if value, _, _ := unstructured.NestedString(read.Object, "spec", "v2"); value != "kept" {
		return fmt.Errorf("the object was not converted: %v", read.Object["spec"])
	}
	return nil
}
