package rules

import "strings"

// flags are the flags of the supervisor that rules need, by ID. They are not the defaults.
var flags = map[string][]string{
	"A15": {"--catalog-refresh-interval=1s"},
	"B42": {"--bundle-kind=shop.example/Widget", "--bundle-kind=shop.example/Signboard:cluster"},
	"B43": {"--bundle-kind=shop.example/Lantern"},
	"G2":  {plainHTTP}, "G4": {plainHTTP}, "G5": {plainHTTP}, "H17": {plainHTTP},
	"K11": {"--protected-copied-csv-namespaces=compat-protected"},
}

const plainHTTP = "--image-plain-http"

// Flags returns the flags of the supervisor, as --name or --name=value, without which the case of a rule cannot pass.
func Flags(id string) []string {
	if strings.HasPrefix(id, bundleImages.Letter) {
		return []string{plainHTTP}
	}
	return flags[id]
}
