package release

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// verifier verifies one release.
type verifier struct {
	facts

	dir, scratch string
	tools        Tools
	cosign       cosign
	// trust are the flags of cosign's commands that verify.
	trust []string
}

// facts are what the signed provenance of a release states.
type facts struct {
	version  Version
	commit   string
	images   string
	subjects sums
}

// Verify verifies the release in a folder as a user would, and writes each check that succeeds to out.
func Verify(ctx context.Context, dir string, trust Trust, tools Tools, out io.Writer) error {
	flags, err := trust.flags()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "chandlery-release-")
	if err != nil {
		return fmt.Errorf("making a folder for temporary files: %w", err)
	}
	v := verifier{dir: dir, scratch: scratch, tools: tools, cosign: cosign{program: tools.Cosign}, trust: flags}
	return errors.Join(v.verify(ctx, out), os.RemoveAll(scratch))
}

func (v verifier) verify(ctx context.Context, out io.Writer) error {
	// Nothing is believed that the provenance states before its signature has been verified.
	if err := v.with(ctx, "verify-blob-attestation", "--type", predicateType, "--bundle", v.path(provenanceFile), v.path(sumsFile)); err != nil {
		return err
	}
	var err error
	if v.facts, err = readProvenance(v.path(provenanceFile)); err != nil {
		return err
	}
	all, err := readLayout(v.path(imagesDir))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "release %s of commit %s\n", v.version, v.commit)
	return errors.Join(report(out, "checksums, signed", v.checksums(ctx)),
		report(out, "provenance of every file and image", v.provenance(all)),
		report(out, "images, signed, with provenance; the chart renders with them", v.registry(ctx, all)),
		report(out, "install.yaml and the other manifests", v.manifests(all)),
		report(out, "kubectl plugin, installed with krew", v.plugin(ctx)),
		report(out, "SBOMs of every program", v.sboms(all)),
		report(out, "release notes", v.notes()))
}

// report writes the result of a check.
func report(out io.Writer, what string, err error) error {
	if err != nil {
		fmt.Fprintln(out, "  FAILED  "+what)
		return fmt.Errorf("%s: %w", what, err)
	}
	fmt.Fprintln(out, "  ok      "+what)
	return nil
}

func (v verifier) path(name string) string { return filepath.Join(v.dir, name) }

// with runs a command of cosign that verifies.
func (v verifier) with(ctx context.Context, command string, args ...string) error {
	_, err := v.cosign.run(ctx, append(append([]string{command}, v.trust...), args...)...)
	return err
}

// errDiffers is an error of parts of a release that do not belong together.
var errDiffers = errors.New("the parts of the release do not belong together")

// differs returns an error with a line for each difference, and nil without differences.
func differs(lines ...string) error {
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n  %s", errDiffers, strings.Join(lines, "\n  "))
}

// readProvenance returns what the provenance states. It does not verify the signature.
func readProvenance(file string) (facts, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return facts{}, fmt.Errorf("reading the provenance: %w", err)
	}
	bundle, err := decode[struct {
		DSSEEnvelope struct{ Payload string }
	}](content)
	if err != nil {
		return facts{}, fmt.Errorf("reading the provenance: %w", err)
	}
	payload, err := base64.StdEncoding.DecodeString(bundle.DSSEEnvelope.Payload)
	if err != nil {
		return facts{}, fmt.Errorf("reading the provenance: %w", err)
	}
	return parseStatement(payload)
}

// parseStatement returns what the statement of a release's provenance states.
func parseStatement(payload []byte) (facts, error) {
	var statement intoto.Statement
	if err := protojson.Unmarshal(payload, &statement); err != nil {
		return facts{}, fmt.Errorf("reading the provenance: %w", err)
	}
	if err := statement.Validate(); err != nil {
		return facts{}, fmt.Errorf("reading the provenance: %w", err)
	}
	content, err := statement.GetPredicate().MarshalJSON()
	if err != nil {
		return facts{}, fmt.Errorf("reading the provenance: %w", err)
	}
	var predicate provenance.Provenance
	if err := protojson.Unmarshal(content, &predicate); err != nil {
		return facts{}, fmt.Errorf("reading the provenance: %w", err)
	}
	definition := predicate.GetBuildDefinition()
	parameters := definition.GetExternalParameters().GetFields()
	version, err := ParseVersion(parameters["version"].GetStringValue())
	if err != nil {
		return facts{}, fmt.Errorf("reading the provenance: %w", err)
	}
	f := facts{version: version, images: parameters["images"].GetStringValue(), subjects: sums{}}
	for _, d := range definition.GetResolvedDependencies() {
		if commit := d.GetDigest()["gitCommit"]; commit != "" {
			f.commit = commit
		}
	}
	for _, subject := range statement.GetSubject() {
		f.subjects[subject.GetName()] = subject.GetDigest()["sha256"]
	}
	return f, nil
}

// readSums reads the checksums of the release.
func (v verifier) readSums() (sums, error) {
	text, err := os.ReadFile(v.path(sumsFile))
	if err != nil {
		return nil, fmt.Errorf("reading the checksums: %w", err)
	}
	return parseSums(text)
}

// checksums compares every file with its checksum.
func (v verifier) checksums(ctx context.Context) error {
	if err := v.with(ctx, "verify-blob", "--bundle", v.path(sumsFile+bundleExtension), v.path(sumsFile)); err != nil {
		return err
	}
	want, err := v.readSums()
	if err != nil {
		return err
	}
	got, err := checksums(os.DirFS(v.dir), isReproducible)
	if err != nil {
		return err
	}
	return differs(got.differences(want)...)
}

// provenance compares the subjects of the provenance with the files and the images.
func (v verifier) provenance(all []stored) error {
	got, err := checksums(os.DirFS(v.dir), func(name string) bool { return isReproducible(name) || name == sumsFile })
	if err != nil {
		return err
	}
	return differs(got.withImages(named(all, v.images)).differences(v.subjects)...)
}

// registry serves the images with their signatures, verifies these, and renders the chart from there.
func (v verifier) registry(ctx context.Context, all []stored) error {
	signatures, err := readLayout(v.path(signaturesDir))
	if err != nil {
		return err
	}
	return withRegistry(ctx, append(all, signatures...), func(host string) error {
		signed := addresses(named(all, host))
		return errors.Join(v.with(ctx, "verify", signed...),
			v.with(ctx, "verify-attestation", append([]string{"--type", predicateType}, signed...)...),
			v.chart(ctx, host, all))
	})
}

// chart renders the chart from a registry, and from its file, and compares the images.
func (v verifier) chart(ctx context.Context, host string, all []stored) error {
	var problems []error
	for _, chart := range [][]string{
		{"oci://" + host + "/" + chartImage, "--plain-http", "--version", v.version.String()},
		{v.path(chartFile(v.version))},
	} {
		args := append([]string{"template", chartName, "--namespace", "chandlery-system"}, chart...)
		rendered, err := v.program(ctx, v.tools.Helm, args...)
		if err != nil {
			return err
		}
		problems = append(problems, expectImages(rendered, programs(all, v.images)))
	}
	return errors.Join(problems...)
}

// program runs a program and returns its standard output.
func (v verifier) program(ctx context.Context, path string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(cmd.Environ(), "HELM_CACHE_HOME="+v.scratch, "KREW_ROOT="+filepath.Join(v.scratch, "krew"))
	var report strings.Builder
	cmd.Stderr = &report
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(path), args[0], err, strings.TrimSpace(report.String()))
	}
	return out, nil
}

// manifests compares the images in install.yaml with those of the release, and reads the other manifests.
func (v verifier) manifests(all []stored) error {
	for name, want := range map[string]map[string]reference{
		installFile: programs(all, v.images), prerequisitesFile: {}, defaultsFile: {},
	} {
		text, err := os.ReadFile(v.path(name))
		if err != nil {
			return fmt.Errorf("reading a manifest: %w", err)
		}
		if err := expectImages(text, want); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// programs returns the images of programs, without the chart.
func programs(all []stored, host string) map[string]reference {
	references := named(all, host)
	delete(references, chartImage)
	return references
}

// notes checks that the release notes are about this version.
func (v verifier) notes() error {
	text, err := os.ReadFile(v.path(notesFile))
	if err != nil {
		return fmt.Errorf("reading the release notes: %w", err)
	}
	if heading := "# Chandlery " + v.version.String() + "\n"; !strings.HasPrefix(string(text), heading) {
		return differs("the notes do not begin with " + strings.TrimSpace(heading))
	}
	return nil
}
