package explain

import (
	"fmt"

	"github.com/chandlery/chandlery/supervisor/refusal"
)

// limited is for what a LimitRange refuses, which it names where it can be seen.
func (s *story) limited(f *Finding) *Finding {
	if !s.nameLimit(f) {
		s.miss("limitranges", s.at().Namespace)
		f = f.with("kubectl -n " + s.at().Namespace + " describe limitranges")
	}
	return f
}

// nameLimit names the LimitRange that a finding speaks of. It says whether there is one.
func (s *story) nameLimit(f *Finding) bool {
	l, is := refusal.LimitOf(f.Cause)
	for i := range s.LimitRanges {
		field := l.FieldIn(&s.LimitRanges[i])
		if !is || field == "" || s.LimitRanges[i].Namespace != s.at().Namespace {
			continue
		}
		at := refTo(KindLimitRange, &s.LimitRanges[i])
		remedy := fmt.Sprintf("change %s of %s", field, at)
		if s.at().Kind != KindCatalogSource {
			remedy = fmt.Sprintf("have the pods ask for what %s allows: spec.config.resources of the Subscription; or change %s of it", at, field)
		}
		f.causing(fmt.Sprintf("%s (%s of %s)", f.Cause, field, at)).advising(remedy).with(kubectl("describe", at, ""))
		return true
	}
	return false
}
