package catalogimage

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Dockerfile returns a Dockerfile for the image that [Build] builds from a folder with the catalog.
// The base is an image of opm or of our registry, with a program /bin/opm. Without a base, the
// image holds the content alone.
func Dockerfile(folder, builder, base string, labels map[string]string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "# The builder and the base run /bin/opm: they are images of opm or of Chandlery's registry.\n")
	fmt.Fprintf(&text, "FROM %s AS builder\nCOPY %s /%s\n", builder, strconv.Quote(folder), configs)
	fmt.Fprintf(&text, "RUN [\"/bin/opm\", \"serve\", \"/%s\", \"--cache-dir=/%s\", \"--cache-only\"]\n\n", configs, cache)
	fmt.Fprintf(&text, "FROM %s\n", base)
	if base == Scratch {
		fmt.Fprintf(&text, "# A CatalogSource of this image sets spec.grpcPodConfig.extractContent:\n"+
			"#   catalogDir: /%s\n#   cacheDir: /%s\n", configs, cache)
	}
	fmt.Fprintf(&text, "COPY --from=builder /%s /%s\nCOPY --from=builder /%s /%s\n", configs, configs, cache, cache)
	all := maps.Clone(labels)
	if all == nil {
		all = map[string]string{}
	}
	all[ContentLabel] = "/" + configs
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "LABEL %s=%s\n", strconv.Quote(name), strconv.Quote(all[name]))
	}
	if base != Scratch {
		fmt.Fprintf(&text, "ENTRYPOINT [\"/bin/opm\"]\nCMD [\"serve\", \"/%s\", \"--cache-dir=/%s\"]\n", configs, cache)
	}
	return text.String()
}

// Scratch is the base of an image that holds the content alone.
const Scratch = "scratch"
