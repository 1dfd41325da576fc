package pemcerts

import (
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestParse checks that a text is refused as a whole if a part of it is damaged, with the line of that part.
func TestParse(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	good := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	lines := strings.Count(good, "\n")
	damaged := strings.Replace(good, "\n", "\n!", 1)
	cut := good[:len(good)/2]
	for name, tt := range map[string]struct {
		text    string
		count   int
		problem string
		line    int
	}{
		"Good":         {text: good, count: 1},
		"Comments":     {text: "# one\n" + good + "# two\n" + good + "# end\n", count: 2},
		"Empty":        {problem: "has no PEM certificate"},
		"DamagedFirst": {text: "# one\n" + damaged + good, problem: "has a PEM block that is incomplete or damaged", line: 2},
		"DamagedLast":  {text: good + damaged, problem: "has a PEM block that is incomplete or damaged", line: lines + 1},
		"Cut":          {text: good + cut, problem: "has a PEM block that is incomplete or damaged", line: lines + 1},
		"CutFirst":     {text: cut + "\n" + good, problem: "has a PEM block that is incomplete or damaged", line: 1},
		"NoDER":        {text: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", problem: "has a certificate that cannot be decoded: x509: malformed certificate", line: 1},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := Parse([]byte(tt.text))
			found, failed := errors.AsType[*Error](err)
			switch {
			case failed != (tt.problem != "") || len(all) != tt.count:
				t.Errorf("%d certificates, %v; want %d, and the problem %q", len(all), err, tt.count, tt.problem)
			case failed && (found.Problem != tt.problem || found.Line != tt.line):
				t.Errorf("problem %q at line %d, want %q at line %d", found.Problem, found.Line, tt.problem, tt.line)
			}
		})
	}
}
