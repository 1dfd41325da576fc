package pulling

import "testing"

func TestByteSize(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "1024": 1024, "512Mi": 512 << 20, "4Gi": 4 << 30, "3Ki": 3 << 10} {
		var size ByteSize
		if err := size.Set(text); err != nil || int64(size) != want {
			t.Errorf("%s: got %d, %v", text, size, err)
		}
		var again ByteSize
		if err := again.Set(size.String()); err != nil || again != size {
			t.Errorf("%s is written as %s", text, size.String())
		}
	}
	for _, text := range []string{"", "0", "-1", "1.5Gi", "1Ti", "9223372036854775807Ki", "Gi", "1 Gi"} {
		var size ByteSize
		if err := size.Set(text); err == nil {
			t.Errorf("%q is taken for %d", text, size)
		}
	}
}
