package discovery

import (
	"encoding"
	"testing"

	"github.com/spf13/pflag"
)

var (
	_ pflag.Value              = (*Setting)(nil)
	_ encoding.TextUnmarshaler = (*Setting)(nil)
	_ encoding.TextMarshaler   = Setting(0)
)

func TestSetting(t *testing.T) {
	for text, want := range map[string]Setting{"auto": Auto, "required": Required, "disabled": Disabled} {
		var got Setting
		if err := got.Set(text); err != nil || got != want || got.String() != text {
			t.Errorf("Set(%q): %v (%q), %v, want %v", text, int(got), got, err, int(want))
		}
		if written, err := want.MarshalText(); err != nil || string(written) != text {
			t.Errorf("MarshalText() of %v: %q, %v", want, written, err)
		}
	}
	for _, text := range []string{"", "Auto", "true", "required "} {
		kept := Required
		err := kept.UnmarshalText([]byte(text))
		if err == nil || kept != Required {
			t.Errorf("UnmarshalText(%q): %v, %v, want an error and nothing changed", text, kept, err)
		}
	}
	if _, err := Setting(7).MarshalText(); err == nil || Setting(7).String() != "Setting(7)" {
		t.Error("a setting that there is not can be written")
	}
}
