// Package flaggroup marks flags that several commands have together. The reference of a program lists such a group
// once, and names it in the sections of the commands.
package flaggroup

import "github.com/spf13/pflag"

// annotation is the annotation of a flag with the name of its group.
const annotation = "chandlery-flag-group"

// Add adds the flags that add defines to a set, as the group with a name, such as "pull flags".
func Add(flags *pflag.FlagSet, name string, add func(*pflag.FlagSet)) {
	group := pflag.NewFlagSet(name, pflag.ContinueOnError)
	add(group)
	group.VisitAll(func(f *pflag.Flag) {
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[annotation] = []string{name}
	})
	flags.AddFlagSet(group)
}

// Of returns the name of a flag's group; empty for none.
func Of(f *pflag.Flag) string {
	if names := f.Annotations[annotation]; len(names) > 0 {
		return names[0]
	}
	return ""
}
