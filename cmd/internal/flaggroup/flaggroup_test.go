package flaggroup

import (
	"testing"

	"github.com/spf13/pflag"
)

// TestAdd checks that the flags of a group are in the set with their values, and that other flags have no group.
func TestAdd(t *testing.T) {
	t.Parallel()
	var oil string
	flags := pflag.NewFlagSet("lamp", pflag.ContinueOnError)
	flags.Bool("slow", false, "take time")
	Add(flags, "oil flags", func(group *pflag.FlagSet) { group.StringVarP(&oil, "oil", "o", "olive", "kind of oil") })
	if err := flags.Parse([]string{"-o", "fish"}); err != nil {
		t.Fatal(err)
	}
	if oil != "fish" {
		t.Errorf("the value is %q, want fish", oil)
	}
	for name, want := range map[string]string{"oil": "oil flags", "slow": ""} {
		if got := Of(flags.Lookup(name)); got != want {
			t.Errorf("the group of --%s is %q, want %q", name, got, want)
		}
	}
}
