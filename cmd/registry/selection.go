package main

import (
	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/selectionflags"
)

// selectionHelp describes the flags that select a part of a catalog.
const selectionHelp = "The flags --package, --channel, --from, --heads, --dependencies and --selection select a part of\n" +
	"the catalog. The selected part is a valid catalog. An installed version outside this part can\n" +
	"still upgrade to a version in it."

// addSelectionFlags adds the flags that select a part of the content.
func (o *sourceFlags) addSelectionFlags(cmd *cobra.Command) {
	o.selection.AddFlags(cmd.Flags())
	for _, flag := range []string{selectionflags.Package, selectionflags.Channel, selectionflags.From} {
		if err := cmd.RegisterFlagCompletionFunc(flag, o.completeSelected); err != nil {
			panic(err) //nolint:forbidigo // the flag has just been added
		}
	}
}

// completeSelected completes the names of the packages in the catalog that an argument names.
func (o *sourceFlags) completeSelected(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	whole := readOptions{source: *o, quiet: true}
	whole.source.selection = selectionflags.Flags{}
	names, directive := whole.completePackages(1)(cmd, args[:1], typed)
	return names, directive | cobra.ShellCompDirectiveNoSpace
}
