package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const (
	// bundleExtension is the extension of Sigstore's bundles of a signature and what verifies it.
	bundleExtension = ".sigstore.json"
	provenanceFile  = "provenance" + bundleExtension
	publicKeyFile   = "cosign.pub"
	// signatureType is the type of what "cosign sign" states.
	signatureType = "https://sigstore.dev/cosign/sign/v1"
)

// isReproducible reports whether a file of a release depends on the commit alone. Signatures, provenance and checksums,
// which follow from the other files, do not.
func isReproducible(file string) bool {
	return file != sumsFile && file != publicKeyFile && !strings.HasSuffix(file, bundleExtension) && !strings.HasPrefix(file, signaturesDir+"/")
}

// signing signs the parts of a release.
type signing struct {
	cosign

	// flags are the flags of cosign's commands that sign.
	flags []string
	// predicate is the file with the provenance, and statement the file with its statement about all parts.
	predicate, statement string
	out                  string
}

// sign writes signatures and provenance of files and images.
func (b builder) sign(ctx context.Context, files sums, started time.Time) error {
	b.report("signing")
	s, err := b.signing(ctx)
	if err != nil {
		return err
	}
	all, err := readLayout(filepath.Join(b.out, imagesDir))
	if err != nil {
		return err
	}
	files[sumsFile] = checksum(files.text())
	statement, err := b.statement(files, named(all, b.Images), started, time.Now())
	if err != nil {
		return err
	}
	for file, message := range map[string]proto.Message{s.statement: statement, s.predicate: statement.GetPredicate()} {
		text, err := protojson.Marshal(message)
		if err != nil {
			return fmt.Errorf("writing the provenance: %w", err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return fmt.Errorf("writing the provenance: %w", err)
		}
	}
	if err := s.files(ctx); err != nil {
		return err
	}
	return withRegistry(ctx, all, func(host string) error { return s.images(ctx, host, all) })
}

// signing prepares cosign, and writes the public key if there is one.
func (b builder) signing(ctx context.Context) (signing, error) {
	s := signing{
		cosign: cosign{program: b.tools.Cosign}, out: b.out,
		predicate: filepath.Join(b.scratch, "predicate.json"), statement: filepath.Join(b.scratch, "statement.json"),
	}
	signer := b.Signer
	if signer == nil {
		s.environment = []string{"COSIGN_PASSWORD="}
		key, err := s.temporaryKey(ctx, b.scratch)
		if err != nil {
			return signing{}, err
		}
		signer = &Signer{Key: key}
	}
	var err error
	if s.flags, err = s.signFlags(ctx, *signer, b.scratch); err != nil || signer.Key == "" {
		return s, err
	}
	public, err := s.run(ctx, "public-key", "--key", signer.Key)
	if err != nil {
		return signing{}, err
	}
	return s, b.write(publicKeyFile, public)
}

// with runs a command of cosign that signs.
func (s signing) with(ctx context.Context, command string, args ...string) error {
	_, err := s.run(ctx, append(append([]string{command}, s.flags...), args...)...)
	return err
}

// files signs the checksums, and writes the provenance.
func (s signing) files(ctx context.Context) error {
	sums := filepath.Join(s.out, sumsFile)
	return errors.Join(
		s.with(ctx, "sign-blob", "--bundle", sums+bundleExtension, sums),
		s.with(ctx, "attest-blob", "--bundle", filepath.Join(s.out, provenanceFile), "--statement", s.statement),
	)
}

// images signs images and chart in a registry and writes the signatures, which refer to them, to a layout.
func (s signing) images(ctx context.Context, host string, all []stored) error {
	dir, err := layout.Write(filepath.Join(s.out, signaturesDir), empty.Index)
	if err != nil {
		return fmt.Errorf("making the layout of the signatures: %w", err)
	}
	signed := named(all, host)
	if err := errors.Join(
		s.with(ctx, "sign", addresses(signed)...),
		s.with(ctx, "attest", append([]string{"--type", predicateType, "--predicate", s.predicate}, addresses(signed)...)...),
	); err != nil {
		return err
	}
	for _, image := range signed {
		if err := appendReferrers(ctx, dir, image, all); err != nil {
			return fmt.Errorf("reading the signatures of %s: %w", image, err)
		}
	}
	return nil
}

// appendReferrers appends what refers to an image, and is not yet stored, to a layout.
func appendReferrers(ctx context.Context, dir layout.Path, image reference, all []stored) error {
	digest, err := name.NewDigest(image.String())
	if err != nil {
		return err //nolint:wrapcheck // wrapped by the caller
	}
	index, err := remote.Referrers(digest, remote.WithContext(ctx))
	if err != nil {
		return err //nolint:wrapcheck // wrapped by the caller
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err //nolint:wrapcheck // wrapped by the caller
	}
	for _, d := range manifest.Manifests {
		if isStored(all, d.Digest) {
			continue
		}
		referrer, err := remote.Image(digest.Context().Digest(d.Digest.String()), remote.WithContext(ctx))
		if err != nil {
			return err //nolint:wrapcheck // wrapped by the caller
		}
		if err := dir.AppendImage(referrer); err != nil {
			return err //nolint:wrapcheck // wrapped by the caller
		}
	}
	return nil
}

func isStored(all []stored, digest v1.Hash) bool {
	for _, one := range all {
		if one.digest == digest {
			return true
		}
	}
	return false
}
