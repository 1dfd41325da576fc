package informer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestReadValue reads the values of streams, in pieces of one byte too.
func TestReadValue(t *testing.T) {
	for name, tt := range map[string]struct {
		stream string
		want   []string
		err    error
	}{
		"nothing":        {err: io.EOF},
		"lines":          {stream: "{\"a\":1}\n{}\n", want: []string{`{"a":1}`, `{}`}, err: io.EOF},
		"one line":       {stream: `{"a":[{}]}{"b":{}} [1,2]`, want: []string{`{"a":[{}]}`, `{"b":{}}`, `[1,2]`}, err: io.EOF},
		"indented":       {stream: "{\n  \"a\": 1\n}\n\n{\n}", want: []string{"{\n  \"a\": 1\n}", "{\n}"}, err: io.EOF},
		"texts":          {stream: `{"}":"{\"","\\":"\\\""} "a]" `, want: []string{`{"}":"{\"","\\":"\\\""}`, `"a]"`}, err: io.EOF},
		"no text at all": {stream: `{"a":null,"b":-1.5e3,"c":true}`, want: []string{`{"a":null,"b":-1.5e3,"c":true}`}, err: io.EOF},
		"no value":       {stream: `{}]`, want: []string{`{}`}, err: errNoValue},
		"cut off":        {stream: `{"a":1}{"b":`, want: []string{`{"a":1}`}, err: io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			for _, source := range []io.Reader{strings.NewReader(tt.stream), iotest.OneByteReader(strings.NewReader(tt.stream))} {
				from := bufio.NewReader(source)
				for _, want := range tt.want {
					got, err := readValue(from)
					if err != nil || string(got) != want {
						t.Fatalf("%q, %v, want %q", got, err, want)
					}
				}
				if got, err := readValue(from); !errors.Is(err, tt.err) {
					t.Errorf("%q, %v at the end, want %v", got, err, tt.err)
				}
			}
		})
	}
	if _, err := readValue(bufio.NewReader(strings.NewReader(`{"` + strings.Repeat("x", maxReduced)))); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a value without end: %v", err)
	}
}

// FuzzReadValue compares readValue with a decoder.
func FuzzReadValue(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":{"spec":{"config":{"env":[{"name":"\"A\\"}]}}}}`), []byte(`{"a":[1,true,null,"\u0041"]}`))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		if !isObject(first) || !isObject(second) {
			return
		}
		from := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(first), iotest.OneByteReader(bytes.NewReader(second))), 16)
		for _, want := range [][]byte{first, second} {
			if got, err := readValue(from); err != nil || !bytes.Equal(got, bytes.TrimSpace(want)) {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(first, &members) != nil {
			return
		}
		for key, want := range members {
			begin, end := member(first, 0, key)
			once := !bytes.Contains(first, []byte("\\")) && bytes.Count(first, []byte(`"`+key+`"`)) == 1
			if once && (begin < 0 || !bytes.Equal(first[begin:end], want)) {
				t.Errorf("the value of %q is at %d to %d of %q, want %q", key, begin, end, first, want)
			}
		}
	})
}

func isObject(text []byte) bool {
	return json.Valid(text) && bytes.HasPrefix(bytes.TrimSpace(text), []byte("{"))
}

// TestCutConfig cuts the configuration of a Subscription, and nothing else.
func TestCutConfig(t *testing.T) {
	long := `{"env":[{"name":"A","value":"` + strings.Repeat("x", maxFrame) + `"}]}`
	for name, tt := range map[string]struct{ event, want string }{
		"large":           {`{"type":"ADDED","object":{"metadata":{"name":"a"},"spec":{"name":"b","config":` + long + `,"source":"c"}}}`, `{"type":"ADDED","object":{"metadata":{"name":"a"},"spec":{"name":"b","config":null,"source":"c"}}}`},
		"with space":      {`{ "object" : { "spec" : { "config" : ` + long + ` } } }`, `{ "object" : { "spec" : { "config" : null } } }`},
		"small":           {event: `{"object":{"spec":{"config":{"env":[]}}}}`},
		"elsewhere":       {event: `{"object":{"spec":{"name":"config"},"status":{"config":` + long + `}}}`},
		"no object":       {event: `{"object":{"spec":[` + long + `]}}`},
		"without a value": {event: `{"object":{"spec":{"config"`},
		"cut off":         {event: `{"object":{"spec":{"config":{"env":[`},
		"not JSON":        {event: `config`},
	} {
		t.Run(name, func(t *testing.T) {
			got, cut := cutConfig([]byte(tt.event), "object", "spec", "config")
			if want := tt.want != ""; cut != want {
				t.Fatalf("cut: %t, want %t", cut, want)
			}
			if cut && string(got) != tt.want || !cut && string(got) != tt.event {
				t.Errorf("got %.200s", got)
			}
		})
	}
}

// BenchmarkReduceJSON reduces the event of a Subscription of 1 MiB. For comparison it decodes the event once,
// the minimum work of an informer without reduction.
func BenchmarkReduceJSON(b *testing.B) {
	sub := operatorsv1alpha1.Subscription{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.SubscriptionKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "fill"},
		Spec:       &operatorsv1alpha1.SubscriptionSpec{Config: &operatorsv1alpha1.SubscriptionConfig{Env: []corev1.EnvVar{{Name: "FILL", Value: strings.Repeat("x", 1<<20)}}}},
	}
	frame, err := json.Marshal(map[string]any{"type": "MODIFIED", "object": &sub})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			var event struct {
				Object operatorsv1alpha1.Subscription
			}
			if err := json.Unmarshal(frame, &event); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reduce", func(b *testing.B) {
		r, err := newReplyReducer()
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			value, err := readValue(bufio.NewReaderSize(bytes.NewReader(frame), maxFrame))
			if err != nil {
				b.Fatal(err)
			}
			if got := r.reduceJSON(value, schema.GroupKind{Group: operatorsv1alpha1.GroupName, Kind: operatorsv1alpha1.SubscriptionKind}); len(got) > maxFrame {
				b.Fatalf("%d bytes are left", len(got))
			}
		}
	})
}
