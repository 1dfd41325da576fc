package sources

import (
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCheckRoots checks that a text is refused as a whole if a part of it is damaged, with the line of that part.
func TestCheckRoots(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	good := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	lines := strings.Count(good, "\n")
	damaged := strings.Replace(good, "\n", "\n!", 1)
	cut := good[:len(good)/2]
	for name, tt := range map[string]struct {
		text    string
		problem string
		line    int
	}{
		"Good":         {text: good},
		"Comments":     {text: "# one\n" + good + "# two\n" + good + "# end\n"},
		"Empty":        {problem: "has no PEM certificate"},
		"DamagedFirst": {text: "# one\n" + damaged + good, problem: "has a PEM block that is incomplete or damaged", line: 2},
		"DamagedLast":  {text: good + damaged, problem: "has a PEM block that is incomplete or damaged", line: lines + 1},
		"Cut":          {text: good + cut, problem: "has a PEM block that is incomplete or damaged", line: lines + 1},
		"CutFirst":     {text: cut + "\n" + good, problem: "has a PEM block that is incomplete or damaged", line: 1},
		"NoDER":        {text: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", problem: "has a certificate that cannot be decoded: ", line: 1},
	} {
		t.Run(name, func(t *testing.T) {
			problem, line := checkRoots([]byte(tt.text))
			if !strings.HasPrefix(problem, tt.problem) || (problem == "") != (tt.problem == "") || line != tt.line {
				t.Errorf("problem %q at line %d, want %q at line %d", problem, line, tt.problem, tt.line)
			}
		})
	}
}
