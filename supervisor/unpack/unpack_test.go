package unpack

import (
	"strings"
	"testing"
)

func TestUnpack(t *testing.T) {
	b := newBed(t)
	reference, digest := b.push("lamp:v1", b.bundle("lamp.v1"))
	u, _ := b.start(nil)
	events := u.Listen()
	_ = events
	r := request(reference, "user")
	if s := u.State(t.Context(), r); s.Ready || s.Began.IsZero() {
		t.Errorf("at first: %+v", s)
	}
	if s := b.await(u, r, "pulled", ready); s.Digest != digest {
		t.Errorf("ready: %+v", s)
	}
	content, err := u.Content(t.Context(), r)
	if err != nil || content.Digest != digest || content.Image != b.host()+"/lamp@"+digest || len(content.Objects) != 2 ||
		!strings.Contains(content.Objects[0], "lamp.v1") {
		t.Errorf("content: %+v, %v", content, err)
	}
}
