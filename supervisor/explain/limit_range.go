package explain

import (
	"fmt"

	"github.com/chandlery/chandlery/supervisor/apiserver/refusal"
)

// limitRangeFinding adds the LimitRange that refused the pods to a finding, or a command that shows all.
func limitRangeFinding(s *search, f *Finding) *Finding {
	if !nameLimitRange(s, f) {
		s.needs("limitranges", s.current().Namespace)
		f = f.withCommands("kubectl -n " + s.current().Namespace + " describe limitranges")
	}
	return f
}

// nameLimitRange adds the LimitRange to which the cause of a finding refers. It reports whether there is one.
func nameLimitRange(s *search, f *Finding) bool {
	l, is := refusal.LimitOf(f.Cause)
	for i := range s.LimitRanges {
		field := l.FieldIn(&s.LimitRanges[i])
		if !is || field == "" || s.LimitRanges[i].Namespace != s.current().Namespace {
			continue
		}
		at := refTo(KindLimitRange, &s.LimitRanges[i])
		remedy := fmt.Sprintf("change %s of %s", field, at)
		if s.current().Kind != KindCatalogSource {
			remedy = fmt.Sprintf("in spec.config.resources of the Subscription, set values that %s allows; or change %s of it", at, field)
		}
		f.withCause(fmt.Sprintf("%s (%s of %s)", f.Cause, field, at)).withRemedy(remedy).withCommands(kubectl("describe", at, ""))
		return true
	}
	return false
}
