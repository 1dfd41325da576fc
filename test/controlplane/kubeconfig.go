package controlplane

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The client of a test is not measured, so it has no rate limit.
const (
	clientQPS   = 1000
	clientBurst = 2000
)

// clientConfig returns the access to server of the holder of the key pair name in dir.
func clientConfig(dir, name, server string) (*rest.Config, error) {
	config := &rest.Config{Host: server, QPS: clientQPS, Burst: clientBurst}

	for file, into := range map[string]*[]byte{
		"ca.crt":      &config.CAData,
		name + ".crt": &config.CertData,
		name + ".key": &config.KeyData,
	} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, fmt.Errorf("read the credentials of %s: %w", name, err)
		}

		*into = data
	}

	return config, nil
}

// writeKubeconfig writes config to a file, as a user of the given name.
func writeKubeconfig(file, user string, config *rest.Config) error {
	const cluster = "chandlery"

	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{cluster: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{user: {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:  map[string]*clientcmdapi.Context{cluster: {Cluster: cluster, AuthInfo: user}},

		CurrentContext: cluster,
	}, file)
	if err != nil {
		return fmt.Errorf("write the kubeconfig of %s: %w", user, err)
	}

	return nil
}
