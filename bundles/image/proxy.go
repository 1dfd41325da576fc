package image

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

var errNoProxy = errors.New("is no URL of a proxy; write it as http://proxy.example.com:3128")

// ParseProxy parses the URL of a proxy. Without a scheme, it is an HTTP proxy. The error continues a sentence that begins
// with the place of the URL, and does not show the URL, which may have a password.
func ParseProxy(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || strings.Trim(u.RequestURI(), "/") != "" {
		return nil, errNoProxy
	}
	if _, err := strconv.ParseUint(cmp.Or(u.Port(), "0"), 10, 16); err != nil {
		return nil, errNoProxy
	}
	if !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
		return nil, fmt.Errorf("has the scheme %q; use one of http, https, socks5 and socks5h", u.Scheme) //nolint:err113 // it names the scheme
	}
	return u, nil
}

// CheckProxies returns an error that names each variable of the environment with an invalid proxy, and the remedy. Go's HTTP
// client connects without a proxy if the URL is invalid.
func CheckProxies(getenv func(string) string) error {
	var problems []error
	for _, names := range [][]string{{"https_proxy", "HTTPS_PROXY"}, {"http_proxy", "HTTP_PROXY"}} {
		// The first one that is set counts.
		i := slices.IndexFunc(names, func(name string) bool { return getenv(name) != "" })
		if i < 0 {
			continue
		}
		if _, err := ParseProxy(getenv(names[i])); err != nil {
			problems = append(problems, fmt.Errorf("%s %w, or unset the variable", names[i], err))
		}
	}
	return errors.Join(problems...)
}
