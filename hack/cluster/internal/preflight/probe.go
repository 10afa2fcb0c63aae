// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ProbeCommand is the hidden subcommand that runs [Probe].
const ProbeCommand = "preflight-probe"

// Features that are tried.
const (
	FeatureNamespaces = "namespaces (mount, network, pid, UTS, IPC)"
	FeatureVeth       = "veth network links"
	FeatureBridge     = "bridge network links"
	FeatureOverlay    = "overlay file system"
	FeatureNAT        = "iptables with address translation"
)

// probeFolder is covered by a tmpfs before anything is written to it.
const probeFolder = "/tmp"

// Probe tries what a cluster does to the kernel and writes the result, a map from
// feature to problem, as JSON. It must run in new mount and network namespaces.
// It returns the exit status of the process.
func Probe(out io.Writer) int {
	if os.Getpid() != 1 {
		fmt.Fprintln(out, "this command is started by \"cluster preflight\"")
		return 2
	}
	features := map[string]string{
		FeatureNamespaces: explain(isolateMounts()),
		FeatureVeth:       explain(addLink(&netlink.Veth{LinkAttrs: named("probe0"), PeerName: "probe1"})),
		FeatureBridge:     explain(addLink(&netlink.Bridge{LinkAttrs: named("probe2")})),
	}
	if features[FeatureNamespaces] == "" { // else a mount would be the host's
		features[FeatureOverlay] = explain(mountOverlay())
		features[FeatureNAT] = explain(translateAddresses())
	}
	if err := json.NewEncoder(out).Encode(features); err != nil {
		return 1
	}
	return 0
}

func explain(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func named(name string) netlink.LinkAttrs {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = name
	return attributes
}

func addLink(link netlink.Link) error { return netlink.LinkAdd(link) }

func isolateMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	// iptables keeps its lock below /run.
	for _, folder := range []string{probeFolder, "/run"} {
		if err := unix.Mount("tmpfs", folder, "tmpfs", 0, ""); err != nil {
			return fmt.Errorf("mounting a tmpfs: %w", err)
		}
	}
	return nil
}

func mountOverlay() error {
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(probeFolder, name), 0o755); err != nil {
			return err
		}
	}
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", probeFolder)
	return unix.Mount("overlay", filepath.Join(probeFolder, "merged"), "overlay", 0, options)
}

// translateAddresses adds a rule of the kinds that kube-proxy and the CNI plugins
// add. A machine without iptables is a matter of packages, not of the kernel.
func translateAddresses() error {
	if !installed("iptables") {
		return nil
	}
	for _, rule := range [][]string{
		{"-w", "-t", "nat", "-A", "POSTROUTING", "-m", "comment", "--comment", "probe", "-m", "mark", "--mark", "0x4000/0x4000", "-j", "MASQUERADE"},
		{"-w", "-t", "filter", "-A", "FORWARD", "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j", "ACCEPT"},
		{"-w", "-t", "nat", "-A", "PREROUTING", "-m", "statistic", "--mode", "random", "--probability", "0.5", "-j", "RETURN"},
	} {
		if output, err := exec.Command("iptables", rule...).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
	}
	return nil
}
