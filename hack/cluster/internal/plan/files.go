// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/component"
)

// File is a file to be written before the first process starts.
type File struct {
	Path string
	Mode fs.FileMode
	Data []byte
}

const (
	publicMode fs.FileMode = 0o644
	secretMode fs.FileMode = 0o600
)

// PauseImage and DNSImage are the images that every node is born with. They have
// full names, because pods name images exactly as they were imported.
const (
	PauseImage = "docker.io/plumbline/pause:local"
	DNSImage   = "docker.io/plumbline/coredns:local"
)

// ConfigFiles renders the configuration files of the daemons.
func (c Cluster) ConfigFiles() ([]File, error) {
	l := c.Layout()
	files := []File{
		{l.Config("hosts"), publicMode, []byte(c.Hosts())},
		{l.Config("resolv.conf"), publicMode, []byte(c.ResolverConfig())},
		{l.Config("audit-policy.yaml"), publicMode, []byte(cmp.Or(c.Options.AuditPolicy, auditPolicy))},
	}
	for _, tunable := range tunables {
		files = append(files, File{l.Config(tunable.file()), publicMode, []byte(tunable.Value + "\n")})
	}
	if c.Options.Nodes == 0 {
		return files, nil
	}
	kubelet, err := c.kubeletConfig()
	if err != nil {
		return nil, err
	}
	network, err := c.networkConfig()
	if err != nil {
		return nil, err
	}
	files = append(files,
		File{l.Config("kubelet.yaml"), publicMode, kubelet},
		File{l.Config("cni/10-bridge.conflist"), publicMode, network},
		File{l.Config("containerd.toml"), publicMode, []byte(c.containerdConfig())},
	)
	if c.Options.HostRegistry != 0 {
		files = append(files, c.registryHosts())
	}
	return files, nil
}

// registries is the folder in which containerd looks for settings of a registry.
const registries = "registries"

// registryHosts sends pulls of localhost:PORT to the host, without TLS. To
// containerd "localhost" would be the cluster's own loopback, where nothing
// listens. A colon in the name of the folder is written as underscores
// (https://github.com/containerd/containerd/blob/main/docs/hosts.md).
func (c Cluster) registryHosts() File {
	folder := fmt.Sprintf("localhost_%d_", c.Options.HostRegistry)
	return File{
		Path: c.Layout().Config(filepath.Join(registries, folder, "hosts.toml")),
		Mode: publicMode,
		Data: fmt.Appendf(nil, "server = \"http://%s\"\n", c.HostRegistryAddress()),
	}
}

// auditPolicy records who did what to which object, once per request, without
// bodies: enough to join with our own records and small enough to keep on.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

type object = map[string]any

func (c Cluster) kubeletConfig() ([]byte, error) {
	l := c.Layout()
	return render("kubelet", object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",
		"authentication": object{
			"anonymous": object{"enabled": false},
			"webhook":   object{"enabled": true},
			"x509":      object{"clientCAFile": l.Certificate(authorityFile)},
		},
		"authorization":            object{"mode": "Webhook"},
		"clusterDomain":            "cluster.local",
		"clusterDNS":               []string{c.Network.DNS().String()},
		"containerRuntimeEndpoint": "unix://" + l.ContainerdSocket(),
		"cgroupDriver":             "cgroupfs", // there need not be a systemd
		// A root of its own: kubelets that share one would take each other's pods
		// for orphans and kill them.
		"cgroupRoot":   "/" + c.Cgroup,
		"failCgroupV1": false,
		"failSwapOn":   false,
		"resolvConf":   l.Config("resolv.conf"),
		"podLogsDir":   l.data("pod-logs"),
		"tlsCertFile":  l.Certificate(Kubelet), "tlsPrivateKeyFile": l.Key(Kubelet),
		// The host's disk is not ours to judge, and a collected image could not be
		// pulled again: there is no registry.
		"evictionHard":                object{},
		"imageGCHighThresholdPercent": 100,
	})
}

// networkConfig joins pods by a bridge. hairpinMode lets a pod reach itself
// through its own Service.
func (c Cluster) networkConfig() ([]byte, error) {
	return render("CNI", object{
		"cniVersion": "1.0.0",
		"name":       "plumbline",
		"plugins": []object{
			{
				"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
				"ipam": object{
					"type":    "host-local",
					"dataDir": c.Layout().data("addresses"),
					"ranges":  [][]object{{{"subnet": c.Network.NodePods().String()}}},
					"routes":  []object{{"dst": "0.0.0.0/0"}},
				},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	})
}

func render(what string, value any) ([]byte, error) {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the %s configuration: %w", what, err)
	}
	return append(data, '\n'), nil
}

// containerdConfig quotes with %q: a TOML basic string has the same escapes as a
// Go string for every path that CheckRoot lets through.
func (c Cluster) containerdConfig() string {
	l := c.Layout()
	text := fmt.Sprintf(`version = 3
root = %q
state = %q
disabled_plugins = ["io.containerd.nri.v1.nri"]
[grpc]
  address = %q
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = %q
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = [%q]
  conf_dir = %q
`, l.data("containerd"), l.data("containerd-state"), l.ContainerdSocket(), PauseImage, c.Programs[component.CNI], l.Config("cni"))
	if c.Options.HostRegistry != 0 {
		text += fmt.Sprintf("[plugins.'io.containerd.cri.v1.images'.registry]\n  config_path = %q\n", l.Config(registries))
	}
	return text
}
