package sampling_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/sampling"
)

const variable = "SAMPLING_TEST"

func TestOneIn(t *testing.T) {
	list := []string{"a", "b", "c", "d", "e"}
	for _, tt := range []struct {
		reason, share string
		want          []string
	}{
		{"no variable", "", list},
		{"all", "1", list},
		{"every second one", "2", []string{"a", "c", "e"}},
		{"a list is never left out", "9", []string{"a"}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Setenv(variable, tt.share)
			if diff := cmp.Diff(tt.want, sampling.OneIn(t, variable, list)); diff != "" {
				t.Errorf("elements (-want +got):\n%s", diff)
			}
		})
	}
}

// failing records with which message a test fails.
type failing struct {
	testing.TB

	message string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestNumber(t *testing.T) {
	for _, tt := range []struct {
		reason, text, fails string
		want                int
	}{
		{reason: "no variable", want: 7},
		{reason: "a number", text: "3", want: 3},
		{reason: "the least number", text: "2", want: 2},
		{reason: "less", text: "1", fails: `$SAMPLING_TEST is "1"; it has to be a number from 2 on`},
		{reason: "a word", text: "many", fails: `$SAMPLING_TEST is "many"; it has to be a number from 2 on`},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Setenv(variable, tt.text)
			got, test := 0, &failing{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				got = sampling.Number(test, variable, 7, 2)
			}()
			<-done
			if got != tt.want || test.message != tt.fails {
				t.Errorf("got %d and %q, want %d and %q", got, test.message, tt.want, tt.fails)
			}
		})
	}
}
