package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// files are the programs, credentials and logs of a control plane.
type files struct{ layout layout }

// AuditLog returns the path of the audit log of a control plane with AuditWrites or AuditReads: a
// JSON object of audit.k8s.io/v1 on each line.
func (f *files) AuditLog() string { return f.layout.auditLog() }

// writeStages joins the stages beside the binaries into the single file that kwok reads.
func (f *files) writeStages() error {
	var documents []string

	for _, name := range stages {
		data, err := os.ReadFile(filepath.Join(f.layout.binDir, stagesFolder, filepath.Base(name)))
		if err != nil {
			return fmt.Errorf("read a stage of kwok: %w", err)
		}

		documents = append(documents, string(data))
	}

	err := os.WriteFile(f.layout.stages(), []byte(strings.Join(documents, "\n---\n")), 0o600)
	if err != nil {
		return fmt.Errorf("write the stages of kwok: %w", err)
	}

	return nil
}

// SaveLogs creates dir and copies the logs into it.
func (f *files) SaveLogs(dir string) error {
	err := os.CopyFS(dir, os.DirFS(f.LogDir()))
	if err != nil {
		return fmt.Errorf("save the logs of the control plane: %w", err)
	}

	return nil
}

// Kubeconfig returns the path of a file with the access of Config.
func (f *files) Kubeconfig() string { return f.layout.kubeconfig("admin") }

// BinDir returns the directory of the programs, kubectl among them.
func (f *files) BinDir() string { return f.layout.binDir }

// Kubectl returns the path of a kubectl of the same version.
func (f *files) Kubectl() string { return filepath.Join(f.layout.binDir, kubectl) }

// LogDir returns the directory of the logs: one file for each component, named after it.
func (f *files) LogDir() string { return f.layout.logDir() }

// CAFile returns the path of the certificate of the cluster's authority.
func (f *files) CAFile() string { return f.layout.pki("ca.crt") }

// NewKubeconfig issues a certificate for a user in groups and returns the path of a kubeconfig with
// it. The name of the user may contain colons but no slash.
func (f *files) NewKubeconfig(user string, groups ...string) (string, error) {
	pki := filepath.Dir(f.layout.pki("x"))

	ca, err := openAuthority(pki, "ca")
	if err != nil {
		return "", err
	}

	err = ca.issue(user, identity{name: user, groups: groups})
	if err != nil {
		return "", err
	}

	config, err := clientConfig(pki, user, f.layout.server())
	if err != nil {
		return "", err
	}

	file := f.layout.kubeconfig(user)

	return file, writeKubeconfig(file, user, config)
}
