package operatorproxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Flag is the name of the flag for the ConfigMap.
const Flag = "operator-proxy"

// Keys of the ConfigMap.
const (
	keyHTTP  = "httpProxy"
	keyHTTPS = "httpsProxy"
	keyNo    = "noProxy"
)

const (
	// interval is the time between two checks of the ConfigMap.
	interval = 10 * time.Second
	// maxValue is the maximum length of a value. Every container of every operator has all of them.
	maxValue = 16 << 10
)

var settingsValid = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
	Name: "chandlery_operator_proxy_valid",
	Help: "1 if the ConfigMap of --operator-proxy is valid, 0 if operators keep earlier proxies or wait, and without the flag.",
})

var errNotRead = errors.New("the proxies for operators are unknown: the ConfigMap of --operator-proxy has not been read yet")

// ParseName parses the value of the flag, NAMESPACE/NAME.
func ParseName(value string) (types.NamespacedName, error) {
	namespace, name, _ := strings.Cut(value, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, fmt.Errorf("--%s is %q, which names no ConfigMap; write it as NAMESPACE/NAME", Flag, value)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// ConfigMap keeps variables as a ConfigMap has them. It reads the ConfigMap every ten seconds.
type ConfigMap struct {
	*Variables

	reader     client.Reader
	key        types.NamespacedName
	exceptions []string
	problem    string
}

// NewConfigMap returns the variables of a ConfigMap. reader must not be a cache. exceptions are added to NO_PROXY.
func NewConfigMap(reader client.Reader, key types.NamespacedName, exceptions ...string) *ConfigMap {
	return &ConfigMap{Variables: NewVariables(errNotRead), reader: reader, key: key, exceptions: exceptions}
}

// NeedLeaderElection returns false: a standby knows the proxies when it begins to lead.
func (c *ConfigMap) NeedLeaderElection() bool { return false }

// Start keeps the variables current until ctx ends.
func (c *ConfigMap) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, c.Check, interval)
	return nil
}

// Check reads the ConfigMap. If it cannot be used, the previous variables remain. It is not safe for concurrent use.
func (c *ConfigMap) Check(ctx context.Context) {
	env, err := c.read(ctx)
	if err == nil {
		c.problem = ""
		settingsValid.Set(1)
		c.Set(env)
		return
	}
	settingsValid.Set(0)
	err = fmt.Errorf("the proxies for operators are unknown: %w", err)
	if c.problem != err.Error() {
		ctrl.LoggerFrom(ctx).Error(err, "Reading the proxies for operators")
	}
	c.problem = err.Error()
	c.SetError(ctx, err)
}

func (c *ConfigMap) read(ctx context.Context) ([]corev1.EnvVar, error) {
	object := &corev1.ConfigMap{}
	err := c.reader.Get(ctx, c.key, object)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("ConfigMap %s of --%s does not exist; create it, without keys for no proxies", c.key, Flag)
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s of --%s: %w", c.key, Flag, err)
	}
	env, err := Parse(object.Data, c.exceptions)
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s of --%s: %w", c.key, Flag, err)
	}
	return env, nil
}

// Parse returns the variables for the data of a ConfigMap; none if it names no proxy. exceptions are added to
// noProxy. The error names the key and the remedy.
func Parse(data map[string]string, exceptions []string) ([]corev1.EnvVar, error) {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if err := check(key, strings.TrimSpace(data[key])); err != nil {
			return nil, err
		}
	}
	plain, secure := strings.TrimSpace(data[keyHTTP]), strings.TrimSpace(data[keyHTTPS])
	if plain == "" && secure == "" {
		return nil, nil
	}
	entries := strings.FieldsFunc(data[keyNo], func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	for _, exception := range exceptions {
		if exception != "" && !slices.Contains(entries, exception) {
			entries = append(entries, exception)
		}
	}
	return Of(plain, secure, strings.Join(entries, ",")), nil
}

// check returns an error for an unknown key or an invalid value.
func check(key, value string) error {
	switch {
	case !slices.Contains([]string{keyHTTP, keyHTTPS, keyNo}, key):
		return fmt.Errorf("unknown key %s; use %s, %s and %s", key, keyHTTP, keyHTTPS, keyNo)
	case len(value) > maxValue:
		return fmt.Errorf("key %s has %d bytes; write at most %d", key, len(value), maxValue)
	case key != keyNo && value != "" && !isProxy(value):
		return fmt.Errorf("key %s is no URL of a proxy; write it as http://proxy.example.com:3128", key)
	}
	return nil
}

// isProxy reports whether a text is the URL of a proxy that programs commonly support.
func isProxy(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme)
}
