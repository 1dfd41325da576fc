package plan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/signature"
	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/supervisor/imagesources/deployed"
)

// signatureRules verify the images of bundles as a supervisor does.
type signatureRules struct {
	policies *imagepolicy.Policies
	// temporary is the directory with the supervisor's files; empty if there is none.
	temporary string
}

// newSignatureRules returns the rules in files of a supervisor, and in the policies of OpenShift if it applies them. The
// caller must close them.
func newSignatureRules(ctx context.Context, reader client.Reader, supervisor *deployed.Supervisor) (*signatureRules, error) {
	r := &signatureRules{policies: imagepolicy.New("")}
	if len(supervisor.Verification) > 0 {
		var err error
		if r.temporary, err = os.MkdirTemp("", "chandlery-rules-"); err != nil {
			return nil, fmt.Errorf("making a directory for rules: %w; set TMPDIR to a directory with room", err)
		}
		// Messages name the directory. They are to name the objects instead.
		dir := filepath.Join(r.temporary, supervisor.Origin)
		if err := writeFiles(dir, supervisor.Verification); err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.policies = imagepolicy.New(dir)
	}
	if supervisor.OpenShift {
		// The log of the supervisor is not the log of this program.
		quiet := log.IntoContext(ctx, logr.Discard())
		r.policies.AwaitNodePolicies()
		r.policies.Found(quiet, reader, discovery.Result{Verdict: discovery.Verdict{Outcome: discovery.Installed}})
	}
	return r, nil
}

func writeFiles(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("writing rules: %w", err)
	}
	for file, data := range files {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			return fmt.Errorf("writing rules: %w", err)
		}
	}
	return nil
}

// close removes the files.
func (r *signatureRules) close() error {
	if r.temporary == "" {
		return nil
	}
	return os.RemoveAll(r.temporary)
}

// verify returns an error if the image of a bundle does not meet the rules. own is the ConfigMap with rules of the catalog;
// its name is empty for none.
func (r *signatureRules) verify(ctx context.Context, reader client.Reader, c *image.Client, own types.NamespacedName, reference string) error {
	rules, err := r.policies.Rules(ctx, reader, imagepolicy.Query{Image: reference, Use: signature.Bundles, Own: own})
	if err != nil {
		return r.withOrigin(err)
	}
	if err := rules.Forbidden(reference); err != nil || !rules.Any() {
		return r.withOrigin(err)
	}
	digest, err := c.Find(ctx, reference)
	if err == nil {
		err = rules.Check(ctx, c, reference, digest)
	}
	return r.withOrigin(rules.Required(err))
}

// withOrigin returns an error of an image that names the supervisor's objects instead of files.
func (r *signatureRules) withOrigin(err error) error {
	known, ok := errors.AsType[*image.Error](err)
	if !ok || r.temporary == "" {
		return err
	}
	text := strings.ReplaceAll(known.Err.Error(), r.temporary+string(filepath.Separator), "")
	return &image.Error{Reference: known.Reference, Reason: known.Reason, Err: &originError{text, known.Err}}
}

// originError is an error with another text.
type originError struct {
	text string
	err  error
}

// Error returns the text.
func (o *originError) Error() string { return o.text }

// Unwrap returns the error.
func (o *originError) Unwrap() error { return o.err }
