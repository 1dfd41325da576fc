package nodepull

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/api"
)

// Flag is the name of the flag with the mode.
const Flag = "image-pull"

// Mode is who pulls bundle images. The zero value is Auto.
type Mode string //nolint:recvcheck // Set changes a flag

// The modes.
const (
	// Auto lets a node pull what the supervisor cannot pull.
	Auto Mode = "auto"
	// Supervisor lets only the supervisor pull.
	Supervisor Mode = "supervisor"
	// Node lets only nodes pull.
	Node Mode = "node"
)

// String returns the mode.
func (m *Mode) String() string { return string(cmp.Or(*m, Auto)) }

var errMode = errors.New("write auto, supervisor or node")

// Set sets the mode from the value of the flag.
func (m *Mode) Set(text string) error {
	if !slices.Contains([]Mode{Auto, Supervisor, Node}, Mode(text)) {
		return fmt.Errorf("%w", errMode)
	}
	*m = Mode(text)
	return nil
}

// For returns the mode for a catalog with a value of annotation chandlery.dev/image-pull; empty for none. The annotation
// counts only beside Auto. The other modes are decisions for the whole cluster, such as where admission verifies images.
func (m Mode) For(annotation string) (Mode, error) {
	if annotation == "" {
		return m, nil
	}
	var own Mode
	if err := own.Set(annotation); err != nil {
		return "", fmt.Errorf("annotation %s of the CatalogSource is %q; %w", api.AnnotationImagePull, annotation, err)
	}
	if cmp.Or(m, Auto) != Auto {
		return m, nil
	}
	return own, nil
}

// Type names the kind of value in usage texts.
func (*Mode) Type() string {
	return strings.Join([]string{string(Auto), string(Supervisor), string(Node)}, "|")
}

// ByNode reports whether a node is to pull an image. err is why the supervisor could not; nil if it has not tried.
func (m Mode) ByNode(err error) bool {
	switch cmp.Or(m, Auto) {
	case Node:
		return err == nil
	case Supervisor:
		return false
	default:
		return err != nil && mayHelp(err)
	}
}

// mayHelp reports whether a node can succeed, and is allowed to, where the supervisor has failed. All sources must have
// failed because of access or of the connection. A node does not get what the supervisor's rules block.
func mayHelp(err error) bool {
	all, isAll := errors.AsType[*image.SourcesError](err)
	if !isAll {
		return isAccess(image.ReasonOf(err))
	}
	blocked := slices.ContainsFunc(all.Skipped, func(s image.Skipped) bool { return s.Blocked })
	return !blocked && len(all.Attempts) > 0 && !slices.ContainsFunc(all.Attempts, func(a image.Attempt) bool { return !isAccess(a.Reason) })
}

// isAccess reports whether a reason concerns access to an image or the connection to its registry. Other credentials
// or mirrors can change it. A policy may also leave an image to nodes.
func isAccess(reason image.Reason) bool {
	switch reason {
	case image.ReasonUnauthorized, image.ReasonNotFound, image.ReasonUntrusted, image.ReasonUnreachable, image.ReasonPolicyNotSupported:
		return true
	default:
		return false
	}
}
