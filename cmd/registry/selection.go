package main

import (
	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/selectionflags"
)

// selectionHelp says what commands do whose flags select a part of a catalog.
const selectionHelp = "With --package, --channel, --from, --heads, --dependencies or --selection only the selected\n" +
	"part of the catalog counts. It is a valid catalog: installed versions that are left out can\n" +
	"upgrade to what is kept, wherever that could be reached before."

// addSelectionFlags adds the flags that select a part of the content.
func (o *sourceFlags) addSelectionFlags(cmd *cobra.Command) {
	o.selection.AddFlags(cmd.Flags())
	for _, flag := range []string{selectionflags.Package, selectionflags.Channel, selectionflags.From} {
		if err := cmd.RegisterFlagCompletionFunc(flag, o.completeSelected); err != nil {
			panic(err) //nolint:forbidigo // the flag has just been added
		}
	}
}

// completeSelected offers the names of the packages in the catalog that is named
// already.
func (o *sourceFlags) completeSelected(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	whole := reading{source: *o, quiet: true}
	whole.source.selection = selectionflags.Flags{}
	names, directive := whole.completePackages(1)(cmd, args[:1], typed)
	return names, directive | cobra.ShellCompDirectiveNoSpace
}
