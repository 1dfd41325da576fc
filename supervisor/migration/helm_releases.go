package migration

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// chartOfOLM is the name of OLM's chart. A release of another chart may have other objects too.
	chartOfOLM = "olm"
	// helmSecret is the type of the Secrets in which Helm records releases.
	helmSecret corev1.SecretType = "helm.sh/release.v1" //nolint:gosec // no credential
	// maxRelease limits the size of an unpacked record, in bytes.
	maxRelease = 64 << 20
)

// helmReleases returns the Secrets in which Helm records the releases of Deployments, if their chart is OLM's.
func helmReleases(ctx context.Context, c client.Reader, deployments []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	seen := map[client.ObjectKey]bool{}
	for _, d := range deployments {
		annotations := d.GetAnnotations()
		release := client.ObjectKey{Namespace: annotations["meta.helm.sh/release-namespace"], Name: annotations["meta.helm.sh/release-name"]}
		if release.Name == "" || release.Namespace == "" || seen[release] {
			continue
		}
		seen[release] = true
		var list corev1.SecretList
		if err := c.List(ctx, &list, client.InNamespace(release.Namespace), client.MatchingLabels{"owner": "helm", "name": release.Name}); err != nil {
			return nil, fmt.Errorf("listing the Secrets of Helm release %s: %w", release, err)
		}
		for i := range list.Items {
			s := &list.Items[i]
			if s.Type != helmSecret || chartOf(s.Data["release"]) != chartOfOLM {
				continue
			}
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
			u.SetNamespace(s.Namespace)
			u.SetName(s.Name)
			u.SetUID(s.UID)
			found = append(found, u)
		}
	}
	return found, nil
}

// chartOf returns the name of the chart in Helm's record of a release: JSON, packed with gzip, in base64. It is empty if the
// record cannot be read.
func chartOf(record []byte) string {
	packed, err := base64.StdEncoding.DecodeString(string(record))
	if err != nil {
		return ""
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return ""
	}
	var content struct {
		Chart struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"chart"`
	}
	if err := json.NewDecoder(io.LimitReader(r, maxRelease)).Decode(&content); err != nil {
		return ""
	}
	return content.Chart.Metadata.Name
}
