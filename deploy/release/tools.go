package release

import (
	"context"
	"path/filepath"

	"github.com/chandlery/chandlery/internal/gotool"
)

// Tools are the paths of programs that make and verify releases.
type Tools struct{ Cosign, Helm, Kustomize, Krew string }

// BuildTools builds the programs that the go.mod files of a checkout pin. The go command caches them.
func BuildTools(ctx context.Context, root string) (Tools, error) {
	var t Tools
	ours, helms := filepath.Join(root, "tools", "release", "go.mod"), filepath.Join(root, "tools", "helm", "go.mod")
	for _, tool := range []struct {
		path          *string
		modfile, name string
	}{
		{&t.Cosign, ours, "cosign"},
		{&t.Krew, ours, "krew"},
		{&t.Kustomize, ours, "kustomize"},
		{&t.Helm, helms, "helm"},
	} {
		path, err := gotool.Path(ctx, tool.modfile, tool.name)
		if err != nil {
			return Tools{}, err //nolint:wrapcheck // names the tool
		}
		*tool.path = path
	}
	return t, nil
}
