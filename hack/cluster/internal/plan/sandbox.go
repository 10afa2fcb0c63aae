// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net/netip"
	"path/filepath"
	"strings"
)

// Sandbox is what the cluster's first process makes of its new namespaces before
// it starts any daemon.
type Sandbox struct {
	Alive   string          `json:"alive"` // lock file to hold
	Exits   string          `json:"exits"` // folder for the exit status of daemons
	Host    string          `json:"host"`  // host name
	Private []string        `json:"private"`
	Binds   []Bind          `json:"binds"`
	Address netip.Prefix    `json:"address"` // of the node, on the link
	Gateway netip.Addr      `json:"gateway"`
	Sysctls []KernelSetting `json:"sysctls"`
}

// Bind shows the file Source in the place of Target.
type Bind struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// KernelSetting is one file below /proc/sys and its content.
type KernelSetting struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Sandbox describes the cluster's namespaces.
func (c Cluster) Sandbox() Sandbox {
	l := c.Layout()
	binds := []Bind{
		{Source: l.Config("hosts"), Target: "/etc/hosts"},
		{Source: l.Config("resolv.conf"), Target: "/etc/resolv.conf"},
	}
	for _, tunable := range tunables {
		binds = append(binds, Bind{Source: l.Config(tunable.file()), Target: tunable.Path})
	}
	return Sandbox{
		Alive:   l.Alive(),
		Exits:   l.Exits(),
		Host:    c.NodeName(),
		Private: PrivateFolders(),
		Binds:   binds,
		Address: c.Network.Node(),
		Gateway: c.Network.Host().Addr(),
		Sysctls: []KernelSetting{{Path: "/proc/sys/net/ipv4/ip_forward", Value: "1"}},
	}
}

// tunables are the settings of the whole machine that a kubelet changes when they
// differ from what it wants (pkg/kubelet/cm, setupKernelTunables). They would
// outlive the cluster. So inside the cluster these files are covered by others
// that hold the wanted values, and the kubelet finds nothing to change.
var tunables = []KernelSetting{
	{Path: "/proc/sys/vm/overcommit_memory", Value: "1"},
	{Path: "/proc/sys/vm/panic_on_oom", Value: "0"},
	{Path: "/proc/sys/kernel/panic", Value: "10"},
	{Path: "/proc/sys/kernel/panic_on_oops", Value: "1"},
	{Path: "/proc/sys/kernel/keys/root_maxkeys", Value: "1000000"},
	{Path: "/proc/sys/kernel/keys/root_maxbytes", Value: "25000000"},
}

// file is the name of the covering file.
func (f KernelSetting) file() string {
	relative := strings.TrimPrefix(filepath.Clean(f.Path), "/proc/sys/")
	return "sysctl-" + strings.ReplaceAll(relative, "/", ".")
}
