package console

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestTimeoutFlag covers valid and invalid time limits.
func TestTimeoutFlag(t *testing.T) {
	t.Parallel()
	for value, tt := range map[string]struct {
		want time.Duration
		err  string
	}{
		"90s": {want: 90 * time.Second},
		"0s":  {want: time.Minute, err: `invalid argument "0s" for "--timeout" flag: must be greater than 0`},
		"0":   {want: time.Minute, err: `invalid argument "0" for "--timeout" flag: must be greater than 0`},
		"-5s": {want: time.Minute, err: `invalid argument "-5s" for "--timeout" flag: must be greater than 0`},
		"5":   {want: time.Minute, err: `invalid argument "5" for "--timeout" flag: time: missing unit in duration "5"`},
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			var timeout time.Duration
			flags := pflag.NewFlagSet("lamp", pflag.ContinueOnError)
			AddTimeoutFlag(flags, &timeout, time.Minute, "time limit")
			text := ""
			if err := flags.Parse([]string{"--timeout", value}); err != nil {
				text = err.Error()
			}
			if timeout != tt.want || text != tt.err {
				t.Errorf("timeout %s, want %s; error %q, want %q", timeout, tt.want, text, tt.err)
			}
			if f := flags.Lookup("timeout"); f.DefValue != "1m0s" || f.Value.Type() != "duration" {
				t.Errorf("default %s, type %s", f.DefValue, f.Value.Type())
			}
		})
	}
}
