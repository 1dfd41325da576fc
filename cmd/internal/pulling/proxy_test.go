package pulling

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// proxyVariables are the variables that name proxies.
var proxyVariables = []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"}

func TestProxiesOfEnvironment(t *testing.T) {
	const form = " is no URL of a proxy; write it as http://proxy.example.com:3128, or unset the variable"
	for name, tc := range map[string]struct {
		env  map[string]string
		want string // the error; empty for none
	}{
		"none":                  {},
		"valid":                 {env: map[string]string{"HTTPS_PROXY": "http://user:word@web.example:3128", "http_proxy": "socks5://web.example"}},
		"without a scheme":      {env: map[string]string{"HTTPS_PROXY": "user:word@web.example:3128"}},
		"an address":            {env: map[string]string{"HTTPS_PROXY": "http://[2001:db8::1]:3128/"}},
		"lower case counts":     {env: map[string]string{"HTTPS_PROXY": "http://", "https_proxy": "http://web.example"}},
		"no host":               {env: map[string]string{"HTTPS_PROXY": "http://"}, want: "HTTPS_PROXY" + form},
		"lower case":            {env: map[string]string{"HTTPS_PROXY": "http://web.example", "https_proxy": "http://:3128"}, want: "https_proxy" + form},
		"plain HTTP":            {env: map[string]string{"HTTP_PROXY": "http:/web.example:3128"}, want: "HTTP_PROXY" + form},
		"a bad port":            {env: map[string]string{"HTTP_PROXY": "http://user:word@web.example:99999"}, want: "HTTP_PROXY" + form},
		"a character":           {env: map[string]string{"HTTPS_PROXY": "http://user:wo rd%@web.example"}, want: "HTTPS_PROXY" + form},
		"a slash in a password": {env: map[string]string{"HTTPS_PROXY": "http://user:word/x@web.example"}, want: "HTTPS_PROXY" + form},
		"another scheme": {
			env:  map[string]string{"HTTPS_PROXY": "ftp://user:word@web.example"},
			want: `HTTPS_PROXY has the scheme "ftp"; use one of http, https, socks5 and socks5h, or unset the variable`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range proxyVariables {
				t.Setenv(variable, tc.env[variable])
			}
			var f Flags
			f.AddFlags(pflag.NewFlagSet("test", pflag.ContinueOnError))
			_, err := f.Client("test")
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || err.Error() != tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "word") {
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}
