// Command operator is the operator of a rehearsal that answers calls of the API server:
//
//	operator ADDRESS   serves /validate, /mutate, /convert and /apis/GROUP/VERSION
//
// It reads its certificate again for each connection, as operators with controller-runtime do.
package main

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// certificates is the folder in which the manager mounts the certificate.
	certificates = "/tmp/k8s-webhook-server/serving-certs"
	// refusal is the message for objects that the webhook refuses.
	refusal = "refused by the rehearsal"
	// shutdownTimeout bounds the calls in progress when the program stops.
	shutdownTimeout = 5 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want ADDRESS, got %q", args)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /apis/{group}/{version}", resources)
	for path, answer := range map[string]func(*request) map[string]any{"/validate": validate, "/mutate": mutate, "/convert": convert} {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { review(w, r, answer) })
	}
	server := &http.Server{
		Addr: args[0], Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				pair, err := tls.LoadX509KeyPair(filepath.Join(certificates, "tls.crt"), filepath.Join(certificates, "tls.key"))
				return &pair, err
			},
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServeTLS("", "") }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	return server.Shutdown(ctx)
}

// resources lists one kind of the group, named after the first label of the group.
func resources(w http.ResponseWriter, r *http.Request) {
	group := r.PathValue("group")
	name, _, _ := strings.Cut(group, ".")
	write(w, map[string]any{
		"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group + "/" + r.PathValue("version"),
		"resources": []any{map[string]any{
			"name": name + "s", "singularName": name, "namespaced": true, "kind": strings.ToUpper(name[:1]) + name[1:], "verbs": []string{"get"},
		}},
	})
}

// request has the fields used of an AdmissionRequest and a ConversionRequest.
type request struct {
	UID               string           `json:"uid"`
	Object            map[string]any   `json:"object"`
	DesiredAPIVersion string           `json:"desiredAPIVersion"`
	Objects           []map[string]any `json:"objects"`
}

// review answers an AdmissionReview or a ConversionReview.
func review(w http.ResponseWriter, r *http.Request, answer func(*request) map[string]any) {
	var asked struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Request    *request `json:"request"`
	}
	err := json.NewDecoder(r.Body).Decode(&asked)
	if err == nil && asked.Request == nil {
		err = errors.New("the review has no request")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := answer(asked.Request)
	response["uid"] = asked.Request.UID
	write(w, map[string]any{"apiVersion": asked.APIVersion, "kind": asked.Kind, "response": response})
}

func write(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		fmt.Fprintln(os.Stderr, "operator: answering:", err)
	}
}

// validate refuses objects with the field spec.refused.
func validate(r *request) map[string]any {
	spec, _ := r.Object["spec"].(map[string]any)
	_, refused := spec["refused"]
	return map[string]any{"allowed": !refused, "status": map[string]any{"message": refusal}}
}

// mutate sets the field spec.mutated.
func mutate(*request) map[string]any {
	patch := base64.StdEncoding.EncodeToString([]byte(`[{"op":"add","path":"/spec/mutated","value":"yes"}]`))
	return map[string]any{"allowed": true, "patchType": "JSONPatch", "patch": patch}
}

// convert renames the field spec.v1 to spec.v2, or back.
func convert(r *request) map[string]any {
	_, version, _ := strings.Cut(r.DesiredAPIVersion, "/")
	former := map[string]string{"v1": "v2", "v2": "v1"}[version]
	for _, o := range r.Objects {
		o["apiVersion"] = r.DesiredAPIVersion
		spec, _ := o["spec"].(map[string]any)
		if value, found := spec[former]; found {
			delete(spec, former)
			spec[version] = value
		}
	}
	return map[string]any{"convertedObjects": r.Objects, "result": map[string]any{"status": "Success"}}
}
