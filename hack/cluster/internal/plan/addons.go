// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"embed"
	"fmt"
	"text/template"
)

//go:embed manifests
var manifests embed.FS

var addonTemplates = template.Must(template.ParseFS(manifests, "manifests/*.yaml"))

// Manifest is an object to be applied, with the API path of that very object.
type Manifest struct {
	Path string
	YAML []byte
}

// DNSDeployment is the API path of the CoreDNS Deployment.
const DNSDeployment = "/apis/apps/v1/namespaces/kube-system/deployments/coredns"

// addonPaths maps the objects of CoreDNS to their files.
var addonPaths = []struct{ path, file string }{
	{"/api/v1/namespaces/kube-system/serviceaccounts/coredns", "serviceaccount.yaml"},
	{"/apis/rbac.authorization.k8s.io/v1/clusterroles/system:coredns", "clusterrole.yaml"},
	{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:coredns", "clusterrolebinding.yaml"},
	{"/api/v1/namespaces/kube-system/configmaps/coredns", "configmap.yaml"},
	{"/api/v1/namespaces/kube-system/services/kube-dns", "service.yaml"},
	{DNSDeployment, "deployment.yaml"},
}

// Addons renders what runs in every cluster with a node: CoreDNS.
func (c Cluster) Addons() ([]Manifest, error) {
	values := struct{ Address, Image string }{c.Network.DNS().String(), DNSImage}
	rendered := make([]Manifest, 0, len(addonPaths))
	for _, addon := range addonPaths {
		var buffer bytes.Buffer
		if err := addonTemplates.ExecuteTemplate(&buffer, addon.file, values); err != nil {
			return nil, fmt.Errorf("rendering %s: %w", addon.file, err)
		}
		rendered = append(rendered, Manifest{Path: addon.path, YAML: buffer.Bytes()})
	}
	return rendered, nil
}
